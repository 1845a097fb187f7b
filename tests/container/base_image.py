"""A base image where no image registry can be reached: Debian by debootstrap, from the mirror that apt uses."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.container.commands import CheckError, run

NAME = "localhost/labkit-base"
_SOURCES = (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*")))


def debian_mirror() -> tuple[str, str]:
    """Address and suite of the first Debian or Ubuntu archive in apt's sources."""
    for path in _SOURCES:
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        text = re.sub(r"^\s*#.*\n?", "", text, flags=re.MULTILINE)
        stanza = re.search(r"^URIs:\s*(?P<address>\S+)\s*\nSuites:\s*(?P<suite>\S+)", text, flags=re.MULTILINE)
        line = re.search(r"^deb\s+(?:\[[^]]*\]\s+)?(?P<address>\S+)\s+(?P<suite>\S+)", text, flags=re.MULTILINE)
        if found := stanza or line:
            return found["address"], found["suite"]
    raise CheckError("no Debian or Ubuntu archive in /etc/apt: give a base image, BASE_IMAGE=…")


def made_by_debootstrap(environment: Mapping[str, str]) -> str:
    """Make the base image with buildah, once; its name."""
    there = run(["buildah", "images", "--quiet", NAME], environment=environment, may_fail=True)
    if there.returncode == 0 and there.stdout.strip():
        return NAME
    address, suite = debian_mirror()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        packages = "--include=python3,python3-venv,ca-certificates"
        run(["debootstrap", "--variant=minbase", packages, suite, str(root), address])
        container = run(["buildah", "from", "scratch"], environment=environment).stdout.strip()
        run(["buildah", "copy", "--quiet", container, str(root), "/"], environment=environment)
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        run(["buildah", "config", "--env", path, container], environment=environment)
        run(["buildah", "commit", "--quiet", "--format", "docker", container, NAME], environment=environment)
        run(["buildah", "rm", container], environment=environment)
    return NAME
