"""The container check itself: what it refuses. (The image is built by ``make container-check``, not by the tests.)"""

from __future__ import annotations

import re
import subprocess
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
        ({"Env": ["AWS_SECRET_ACCESS_KEY=abc"]}, "carries settings of its build"),
        ({"Env": ["https_proxy=http://me:secret@proxy"]}, "carries settings of its build"),
    ],
    ids=["root", "no health check", "a token", "pip's settings", "a key", "a proxy"],
)
def test_an_image_without_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check.check_config({**GOOD, **change})


class _Box:
    """An engine that answers what it was told to, by the first word that fits."""

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers, self.asked = answers, []  # type: tuple[dict[str, tuple[int, str]], list[list[str]]]

    def execute(self, command: list[str], *, as_root: bool = False) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        word = next(word for word in (" ".join(command), *command) if word in self.answers)
        code, text = self.answers[word]
        return subprocess.CompletedProcess(command, code, text, "")


def test_what_a_build_leaves_behind_is_found() -> None:
    good = {"id": (0, "1000\n"), "ls": (0, "labkit\nnotebooks\n"), "sh": (0, "")}
    check.check_contents(_Box(**good))
    for change, message in (
        ({"id": (0, "0")}, "commands run as user 0"),
        ({"ls": (0, "labkit\ntests\n")}, "carries tests$"),
        ({"sh": (0, "/root/.cache/pip\n")}, "carries /root/.cache/pip$"),
    ):
        with pytest.raises(CheckError, match=message):
            check.check_contents(_Box(**{**good, **change}))


def test_the_search_finds_caches_and_keys_and_passes_over_an_empty_folder(tmp_path: Path) -> None:
    for name in ("home/lab/__pycache__/x.pyc", "root/.cache/pip/x", "root/.netrc", "etc/pip.conf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/pip.conf").touch()  # what lending one leaves
    script = re.sub(
        r"find (/\S*)( /\S+)?",
        lambda m: f"find {tmp_path}{m[1]}{f' {tmp_path}{m[2].strip()}' if m[2] else ''}",
        check.LEFT_BEHIND,
    )
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout.split()
    assert {str(Path(name).relative_to(tmp_path)) for name in found} == {
        "home/lab/__pycache__", "root/.cache/pip", "root/.netrc", "etc/pip.conf",
    }  # fmt: skip


def test_a_health_check_that_says_well_of_nothing_is_refused() -> None:
    class Asked(_Box):
        def execute(self, command: list[str], *, as_root: bool = False) -> subprocess.CompletedProcess[str]:
            port = int(re.findall(r":(\d+)/", command[-1])[0])
            return subprocess.CompletedProcess(command, 0 if port == 4000 else self.answers["none"][0], "", "")

    check.check_health(Asked(none=(1, "")), GOOD, 4000)
    with pytest.raises(CheckError, match="says 0 of a server, 0 of none"):
        check.check_health(Asked(none=(0, "")), GOOD, 4000)
    with pytest.raises(CheckError, match="says 1 of a server"):
        check.check_health(Asked(none=(1, "")), GOOD, 4001)


def test_a_kernel_that_is_not_proved_inside_fails_the_check() -> None:
    check.check_kernels(_Box(labkit=(0, "bin_rows.cu as bin_rows: proved\n")))
    with pytest.raises(CheckError, match=r"(?s)not proved in the container.*needs g\+\+"):
        check.check_kernels(_Box(labkit=(2, "the CPU runner needs g++")))


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
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check.check_served(port, "right", str)
    monkeypatch.setattr(_Server, "open_to_all", True)
    with pytest.raises(CheckError, match="200, 200, 200"):
        check.check_served(port, "right", str)


def test_a_server_that_never_answers_ends_with_its_log() -> None:
    with pytest.raises(CheckError, match="did not answer within 0 s:\nno such module"):
        check.check_served(check.free_port(), "t", lambda: "no such module", timeout_s=0.0)


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
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(CheckError, match="apt-get install -y --no-install-recommends buildah debootstrap"):
        engines.engine()


def test_a_command_that_fails_is_shown_with_what_it_said() -> None:
    with pytest.raises(CheckError, match=r"(?s)exit 3.*the reason"):
        run(["sh", "-c", "echo the reason; exit 3"])
    assert run(["sh", "-c", "exit 3"], may_fail=True).returncode == 3
    with pytest.raises(CheckError, match="no-such-command is not installed"):
        run(["no-such-command"])
