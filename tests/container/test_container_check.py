"""The container check itself: what it refuses. (The image is built by ``make container-check``, not by the tests.)"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.container import __main__ as check
from tests.container import base_image, engines, host
from tests.container.commands import CheckError, run

GOOD: dict[str, Any] = {
    "User": "lab",
    "Healthcheck": {"Test": ["CMD", "python", "-c", "urlopen('http://127.0.0.1:8888/api')"]},
    "Env": ["PATH=/usr/bin"],
    "Cmd": ["jupyter", "lab", "--port=8888"],
}


def test_an_image_with_a_user_a_health_check_and_no_secret_passes() -> None:
    assert check.check_config(GOOD) == ["jupyter", "lab", "--port=8888"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"User": ""}, "the image runs as root"),
        ({"Healthcheck": None}, "no health check"),
        ({"Env": ["JUPYTER_TOKEN=abc"]}, "carries settings of its build"),
        ({"Env": ["PIP_FIND_LINKS=/wheels"]}, "carries settings of its build"),
    ],
    ids=["root", "no health check", "a token", "pip's settings"],
)
def test_an_image_without_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check.check_config({**GOOD, **change})


class _Server(BaseHTTPRequestHandler):
    """A server that lets everybody in, or only those with the token."""

    open_to_all = False

    def do_GET(self) -> None:
        allowed = self.path == "/api" or self.open_to_all or self.path.endswith("token=right")
        self.send_response(200 if allowed else 403)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_server_that_wants_the_token_passes_and_one_that_lets_everybody_in_does_not(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check.check_served(port, "right", tmp_path)
    monkeypatch.setattr(_Server, "open_to_all", True)
    with pytest.raises(CheckError, match="200, 200, 200"):
        check.check_served(port, "right", tmp_path)


def test_a_server_that_never_answers_ends_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("no such module")
    with pytest.raises(CheckError, match="did not answer within 0 s:\nno such module"):
        check.check_served(check.free_port(), "t", log, timeout_s=0.0)


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\nTypes: deb\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n",
        "# deb http://old/debian buster main\ndeb [arch=amd64 signed-by=/k.gpg] http://mirror/debian bookworm main\n",
    ],
    ids=["deb822", "one line"],
)
def test_the_mirror_is_the_one_that_apt_uses(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources").write_text(text)
    monkeypatch.setattr(base_image, "_SOURCES", (tmp_path / "sources",))
    assert base_image.debian_mirror() == ("http://mirror/debian", "bookworm")


def test_without_a_mirror_a_base_image_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_image, "_SOURCES", ())
    with pytest.raises(CheckError, match="give a base image"):
        base_image.debian_mirror()


def test_folders_of_wheels_are_lent_and_addresses_are_not(tmp_path: Path) -> None:
    (tmp_path / "index" / "simple").mkdir(parents=True)
    (tmp_path / "wheels").mkdir()
    text = f"https://somewhere.example/simple file://{tmp_path}/index/simple {tmp_path}/wheels {tmp_path}/missing"
    assert host.local_folders(text) == [tmp_path / "index", tmp_path / "wheels"]


def test_without_an_engine_the_line_that_installs_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.shutil, "which", lambda name: None)
    with pytest.raises(CheckError, match="apt-get install -y --no-install-recommends buildah debootstrap"):
        engines.engine()


def test_a_command_that_fails_is_shown_with_what_it_said() -> None:
    with pytest.raises(CheckError, match=r"(?s)exit 3.*the reason"):
        run(["sh", "-c", "echo the reason; exit 3"])
    assert run(["sh", "-c", "exit 3"], may_fail=True).returncode == 3
    with pytest.raises(CheckError, match="no-such-command is not installed"):
        run(["no-such-command"])
