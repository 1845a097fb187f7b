"""A JupyterLab of its own for the browser tests, and how to drive its page."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_ARGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


FOLDERS = (
    "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR",
)  # fmt: skip


class JupyterLab:
    """A server on a free port of 127.0.0.1 with its own folders, so that nothing of the user's is read or changed."""

    def __init__(
        self,
        folder: Path,
        *,
        kernel_environment: dict[str, str] | None = None,
        settings: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.token = secrets.token_hex(16)
        self.port = _free_port()
        self._home = Path(tempfile.mkdtemp(prefix="labkit-ui-"))
        self._log = self._home / "server.log"
        environment = {**os.environ, **(kernel_environment or {})}
        for name in FOLDERS:
            (self._home / name.lower()).mkdir()
            environment[name] = str(self._home / name.lower())
        for plugin, values in (settings or {}).items():
            package, name = plugin.split(":")
            place = self._home / "jupyterlab_settings_dir" / package
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
        flags = [
            "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.expose_app_in_browser=True",
            "--ServerApp.jpserver_extensions={'labkit.server_extension': True}",
        ]  # fmt: skip
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *flags], env=environment, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._wait_until_up()

    @property
    def pid(self) -> int:
        """Of the server's process."""
        return self._process.pid

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(self.url("api/status"), timeout=2).close()
                return
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not come up:\n{self._log.read_text()[-3000:]}")

    def url(self, path: str, query: str = "") -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}{query}"

    def shut_down_kernels(self) -> None:
        for session in self._ask("GET", "api/sessions"):
            self._ask("DELETE", f"api/sessions/{session['id']}")

    def _ask(self, method: str, path: str) -> Any:
        asked = urllib.request.Request(self.url(path), method=method, headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.loads(answer.read() or "null")

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
        shutil.rmtree(self._home, ignore_errors=True)


def open_notebook(page: Page, lab: JupyterLab, name: str) -> None:
    """Open a notebook and wait until its kernel is there: the status bar knows, the toolbar says "idle" too early."""
    page.goto(lab.url(f"doc/tree/{name}", "&reset"), wait_until="domcontentloaded")
    page.locator(".jp-NotebookPanel .jp-Notebook").wait_for(state="visible", timeout=60_000)
    wait_idle(page)


def wait_idle(page: Page, timeout_s: float = 90) -> None:
    idle = page.locator("#jp-main-statusbar .jp-StatusBar-TextItem", has_text="| Idle")
    idle.wait_for(state="visible", timeout=timeout_s * 1000)


def run_all(page: Page, timeout_s: float = 90) -> None:
    """Run all cells; a cell that raises fails at once with its traceback."""
    page.locator(".lm-MenuBar-item", has_text="Run").first.click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    page.wait_for_function(
        """() => {
          const cells = document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt');
          const prompts = [...cells].map(e => e.textContent);
          const raised = document.querySelector('.jp-OutputArea [data-mime-type="application/vnd.jupyter.stderr"]');
          return raised || (prompts.length && prompts.every(p => /\\[\\d+\\]/.test(p)));
        }""",
        timeout=timeout_s * 1000,
    )
    raised = page.locator(".jp-OutputArea [data-mime-type='application/vnd.jupyter.stderr']")
    assert raised.count() == 0, raised.first.inner_text()
    wait_idle(page, timeout_s)


def cell_value(panel: Locator, strategy: str, figure: str) -> Locator:
    """The cell of the strategies table that shows a figure; its ``data-value`` is what Python computed."""
    return panel.locator(f"tr[data-strategy='{strategy}'] td[data-figure='{figure}']")


def expect_changed(cell: Locator, before: str) -> None:
    """Wait until Python has written another value."""
    expect(cell).not_to_have_attribute("data-value", before, timeout=20_000)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
