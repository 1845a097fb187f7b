"""Build, start, look: ``python -m tests.container [--base IMAGE]``; exit code 1 with what was found wrong."""

from __future__ import annotations

import argparse
import json
import secrets
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.container.commands import CheckError
from tests.container.engines import Engine, engine

ROOT = Path(__file__).resolve().parents[2]
#: What must not be in the image: secrets, caches, tests and their data, the history.
UNWANTED = ("tests", ".git", ".venv", ".ci", "test-results", "__pycache__")


def say(text: str) -> None:
    print(f"container-check: {text}", flush=True)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def answer(address: str) -> int:
    """The status of a request; 0 where nobody answers."""
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (urllib.error.URLError, OSError):
        return 0


def check_config(config: dict[str, object]) -> list[str]:
    """The image's own settings: a user without rights, a health check, a command. The words of the command."""
    if config.get("User") in (None, "", "root", "0"):
        raise CheckError(f"the image runs as {config.get('User') or 'root'}, not as a user without rights")
    health = config.get("Healthcheck")
    if not isinstance(health, dict) or "/api" not in " ".join(health.get("Test", [])):
        raise CheckError(f"the image has no health check that asks /api: {health}")
    secret = [word for word in config.get("Env") or () if "TOKEN" in str(word) or "PIP_" in str(word)]  # type: ignore[attr-defined]
    if secret:
        raise CheckError(f"the image carries settings of its build: {secret}")
    say(f"user {config['User']}, health check, no secret among {len(config.get('Env') or ())} variables")  # type: ignore[arg-type]
    return [str(word) for word in config["Cmd"]]  # type: ignore[attr-defined]


def check_served(port: int, token: str, log: Path, *, timeout_s: float = 120) -> None:
    """Wait for the server, then ask with and without the token."""
    deadline = time.monotonic() + timeout_s
    base = f"http://127.0.0.1:{port}/api"
    while answer(base) != 200:
        if time.monotonic() > deadline:
            raise CheckError(f"{base} did not answer within {timeout_s:.0f} s:\n{log.read_text()[-3000:]}")
        time.sleep(0.5)
    without, wrong, right = (answer(f"{base}/contents{query}") for query in ("", "?token=wrong", f"?token={token}"))
    if (without, wrong, right) != (403, 403, 200):
        raise CheckError(f"contents without, with a wrong and with the right token: {without}, {wrong}, {right}")
    say("serves; refuses a request without the token and with a wrong one")


def check_inside(box: Engine) -> None:
    """The user, what is not there, and notebook 01 headless with its tuned.json."""
    user = box.execute(["id", "-u"]).stdout.strip()
    if user in ("", "0"):
        raise CheckError(f"commands run as user {user or 'unknown'}")
    listed = box.execute(
        ["sh", "-c", "ls -a /usr/local/src/labkit /home/lab/labkit; find / -xdev -name '*.pyc' | wc -l"]
    )
    found = [
        name for name in UNWANTED if name in listed.stdout.split() and name not in ("results", "requirements.lock")
    ]
    if found:
        raise CheckError(f"the image carries {', '.join(found)}")
    out = "/home/lab/labkit/results/check"
    command = ["labkit", "run", "/home/lab/labkit/notebooks/01_tune_buckets.ipynb", "--out", out, "-p", "out_dir", out]
    done = box.execute(command)
    if done.returncode:
        raise CheckError(f"notebook 01 failed in the container:\n{(done.stdout + done.stderr)[-3000:]}")
    tuned = box.execute(["cat", f"{out}/tuned.json"])
    edges = json.loads(tuned.stdout)["policy"]["bucket_edges"] if tuned.returncode == 0 else None
    if not edges:
        raise CheckError(f"no tuned.json with bucket edges in {out}: {tuned.stderr.strip()}")
    say(f"runs notebook 01 headless as user {user}; tuned.json has the edges {edges}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make container-check", description=__doc__)
    parser.add_argument("--base", help="base image; without a Docker engine one is made by debootstrap")
    given = parser.parse_args(arguments)
    try:
        box = engine()
        say(f"building with {box.name} (minutes the first time)")
        start = time.monotonic()
        box.build(ROOT, given.base)
        say(f"built in {time.monotonic() - start:.0f} s, {box.size_bytes() / 1e9:.1f} GB")
        command = check_config(box.config())
        port, token = free_port(), secrets.token_hex(16)
        command = [word if not word.startswith("--port=") else f"--port={port}" for word in command]
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "server.log"
            box.start(command, {"JUPYTER_TOKEN": token}, log)
            try:
                check_served(port, token, log)
                check_inside(box)
            finally:
                box.stop()
    except CheckError as error:
        say(f"FAILED: {error}")
        return 1
    say("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
