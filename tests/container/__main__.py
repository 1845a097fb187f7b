"""Build, start, look: ``python -m tests.container [--base IMAGE]``; exit code 1 with what was found wrong."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.container.commands import CheckError
from tests.container.engines import Engine, engine

ROOT = Path(__file__).resolve().parents[2]
#: What must not be in the image: tests and their data, the history, results of a checkout.
UNWANTED = ("tests", ".git", ".venv", ".ci", "test-results")
#: Names of variables that a build must not leave in the image (python:3.11-slim has a GPG_KEY, which is public).
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_KEY|ACCESS_KEY|PIP_|PROXY", re.IGNORECASE)
#: Shell that prints what a build may leave behind: caches, settings of pip, keys.
LEFT_BEHIND = """
find /home/lab /usr/local/src/labkit -name __pycache__ -o -name .ipynb_checkpoints -o -name '.git*'
find /var/lib/apt/lists -name '*_Packages*'
find / -xdev \\( -path '*/.cache/pip' -o -name pip.conf -o -name .netrc -o -name '.pypirc' -o -name id_rsa \\) -size +0
"""


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


def check_config(config: dict[str, Any]) -> list[str]:
    """The image's own settings: a user without rights, a health check, a command. The words of the command."""
    if config.get("User") in (None, "", "root", "0"):
        raise CheckError(f"the image runs as {config.get('User') or 'root'}, not as a user without rights")
    health = config.get("Healthcheck")
    if not isinstance(health, dict) or "/api" not in " ".join(health.get("Test", [])):
        raise CheckError(f"the image has no health check that asks /api: {health}")
    variables = [str(word) for word in config.get("Env") or ()]
    secret = [word for word in variables if SECRET.search(word.partition("=")[0])]
    if secret:
        raise CheckError(f"the image carries settings of its build: {secret}")
    say(f"user {config['User']}, health check, no secret among {len(variables)} variables")
    return [str(word) for word in config["Cmd"]]


def check_served(port: int, token: str, read_log: Callable[[], str], *, timeout_s: float = 120) -> None:
    """Wait for the server, then ask with and without the token."""
    deadline = time.monotonic() + timeout_s
    base = f"http://127.0.0.1:{port}/api"
    while answer(base) != 200:
        if time.monotonic() > deadline:
            raise CheckError(f"{base} did not answer within {timeout_s:.0f} s:\n{read_log()[-3000:]}")
        time.sleep(0.5)
    without, wrong, right = (answer(f"{base}/contents{query}") for query in ("", "?token=wrong", f"?token={token}"))
    if (without, wrong, right) != (403, 403, 200):
        raise CheckError(f"contents without, with a wrong and with the right token: {without}, {wrong}, {right}")
    say("serves; refuses a request without the token and with a wrong one")


def check_health(box: Engine, config: dict[str, Any], port: int) -> None:
    """The command of the health check, asked at the port where the server is, and at one where nobody is."""
    words = [str(word) for word in config["Healthcheck"]["Test"][1:]]
    here, nowhere = ([word.replace("8888", str(at)) for word in words] for at in (port, free_port()))
    well, ill = box.execute(here), box.execute(nowhere)
    if well.returncode or not ill.returncode:
        raise CheckError(
            f"the health check says {well.returncode} of a server, {ill.returncode} of none: {well.stderr}"
        )
    say("the health check knows a server from none")


def check_contents(box: Engine) -> None:
    """The user, and what must not be there."""
    user = box.execute(["id", "-u"]).stdout.strip()
    if user in ("", "0"):
        raise CheckError(f"commands run as user {user or 'unknown'}")
    listing = box.execute(["ls", "-a", "/usr/local/src/labkit", "/home/lab/labkit"])
    if listing.returncode:
        raise CheckError(f"what is in the image cannot be listed: {listing.stderr.strip()}")
    listed = listing.stdout.split()
    left = box.execute(["sh", "-c", LEFT_BEHIND], as_root=True).stdout.split()
    if found := [name for name in UNWANTED if name in listed] + left:
        raise CheckError(f"the image carries {', '.join(found)}")
    say(f"commands run as user {user}; no tests, no caches, no settings of the build")


def check_notebook(box: Engine) -> None:
    """Notebook 01 headless, with its tuned.json."""
    out = "/home/lab/labkit/results/check"
    command = ["labkit", "run", "/home/lab/labkit/notebooks/01_tune_buckets.ipynb", "--out", out, "-p", "out_dir", out]
    done = box.execute(command)
    if done.returncode:
        raise CheckError(f"notebook 01 failed in the container:\n{(done.stdout + done.stderr)[-3000:]}")
    tuned = box.execute(["cat", f"{out}/tuned.json"])
    edges = json.loads(tuned.stdout)["policy"]["bucket_edges"] if tuned.returncode == 0 else None
    if not edges:
        raise CheckError(f"no tuned.json with bucket edges in {out}: {tuned.stderr.strip()}")
    say(f"runs notebook 01 headless; tuned.json has the edges {edges}")


def check_kernels(box: Engine) -> None:
    """A CUDA kernel is proved inside, without a GPU."""
    command = ["labkit", "check-kernel", "/usr/local/src/labkit/kernels/bin_rows.cu", "--op", "bin_rows"]
    done = box.execute(command)
    if done.returncode:
        raise CheckError(f"bin_rows.cu is not proved in the container:\n{(done.stdout + done.stderr)[-3000:]}")
    say(done.stdout.splitlines()[0])


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
        config = box.config()
        command = check_config(config)
        port, token = free_port(), secrets.token_hex(16)
        command = [word if not word.startswith("--port=") else f"--port={port}" for word in command]
        box.start(command, {"JUPYTER_TOKEN": token})
        try:
            check_served(port, token, box.log)
            check_health(box, config, port)
            check_contents(box)
            check_notebook(box)
            check_kernels(box)
        finally:
            box.stop()
    except CheckError as error:
        say(f"FAILED: {error}")
        return 1
    say("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
