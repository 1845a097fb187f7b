"""Docker, or buildah where there is no engine: the same few verbs for both."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tests.container.base_image import made_by_debootstrap
from tests.container.commands import CheckError, run
from tests.container.host import lent_by_the_host

IMAGE = "localhost/labkit-check"


class Engine(Protocol):
    """Builds the image and runs commands in it."""

    name: str

    def build(self, folder: Path, base: str | None) -> None: ...
    def config(self) -> dict[str, Any]: ...
    def size_bytes(self) -> int: ...
    def start(self, command: Sequence[str], variables: dict[str, str]) -> None: ...
    def log(self) -> str: ...
    def execute(self, command: Sequence[str], *, as_root: bool = False) -> subprocess.CompletedProcess[str]: ...
    def stop(self) -> None: ...


class Docker:
    """A running Docker engine; the container has the host's network, as that of buildah has."""

    name = "docker"
    _CONTAINER = "labkit-check"

    def build(self, folder: Path, base: str | None) -> None:
        arguments = ["--build-arg", f"BASE_IMAGE={base}"] if base else []
        run(["docker", "build", "--quiet", "--tag", IMAGE, *arguments, str(folder)])

    def config(self) -> dict[str, Any]:
        return dict(json.loads(run(["docker", "inspect", IMAGE]).stdout)[0]["Config"])

    def size_bytes(self) -> int:
        return int(json.loads(run(["docker", "inspect", IMAGE]).stdout)[0]["Size"])

    def start(self, command: Sequence[str], variables: dict[str, str]) -> None:
        run(["docker", "rm", "--force", self._CONTAINER], may_fail=True)
        given = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
        run(
            [
                "docker",
                "run",
                "--detach",
                "--init",
                "--network",
                "host",
                "--name",
                self._CONTAINER,
                *given,
                IMAGE,
                *command,
            ]
        )

    def log(self) -> str:
        """What the server has said until now."""
        logs = run(["docker", "logs", self._CONTAINER], may_fail=True)
        return logs.stdout + logs.stderr

    def execute(self, command: Sequence[str], *, as_root: bool = False) -> subprocess.CompletedProcess[str]:
        user = ["--user", "root"] if as_root else []
        return run(["docker", "exec", *user, self._CONTAINER, *command], may_fail=True)

    def stop(self) -> None:
        run(["docker", "rm", "--force", self._CONTAINER], may_fail=True)


class Buildah:
    """buildah as root without an engine: files in plain folders, processes in a chroot."""

    name = "buildah"
    _ISOLATION = ("--isolation", "chroot")

    def __init__(self) -> None:
        self._environment = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
        self._container = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="labkit-container-")

    def build(self, folder: Path, base: str | None) -> None:
        base = base or made_by_debootstrap(self._environment)
        command = ["buildah", "build", *self._ISOLATION, "--format", "docker", "--build-arg", f"BASE_IMAGE={base}"]
        with lent_by_the_host() as volumes:
            run([*command, *volumes, "--tag", IMAGE, str(folder)], environment=self._environment, timeout_s=3600)

    def _inspected(self) -> dict[str, Any]:
        found = run(["buildah", "inspect", "--type", "image", IMAGE], environment=self._environment)
        return dict(json.loads(found.stdout))

    def config(self) -> dict[str, Any]:
        return dict(self._inspected()["Docker"]["config"])

    def size_bytes(self) -> int:
        found = run(["buildah", "images", "--json", IMAGE], environment=self._environment)
        number, unit = str(json.loads(found.stdout)[0]["size"]).split()
        return int(float(number) * {"KB": 1e3, "MB": 1e6, "GB": 1e9}[unit])

    def start(self, command: Sequence[str], variables: dict[str, str]) -> None:
        self._container = run(["buildah", "from", IMAGE], environment=self._environment).stdout.strip()
        given = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
        with (Path(self._folder.name) / "log").open("wb") as file:
            self._process = subprocess.Popen(
                ["buildah", "run", *self._ISOLATION, *given, self._container, "--", *command],
                env=self._environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def log(self) -> str:
        """What the server has said until now."""
        return (Path(self._folder.name) / "log").read_text(encoding="utf-8", errors="replace")

    def execute(self, command: Sequence[str], *, as_root: bool = False) -> subprocess.CompletedProcess[str]:
        user = ["--user", "root"] if as_root else []
        words = ["buildah", "run", *self._ISOLATION, *user, self._container, "--", *command]
        return run(words, environment=self._environment, may_fail=True)

    def stop(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(20)
        run(["buildah", "rm", self._container], environment=self._environment, may_fail=True)


def engine() -> Engine:
    """Docker where its engine answers, else buildah.

    Raises:
        CheckError: neither is there.
    """
    if shutil.which("docker") and run(["docker", "info"], may_fail=True, timeout_s=30).returncode == 0:
        return Docker()
    if shutil.which("buildah") and shutil.which("debootstrap"):
        if os.geteuid() != 0:
            raise CheckError("buildah without an engine needs root here: run as root, or install Docker")
        return Buildah()
    raise CheckError(
        "neither a Docker engine nor buildah is there: "
        "sudo apt-get install -y --no-install-recommends buildah debootstrap"
    )
