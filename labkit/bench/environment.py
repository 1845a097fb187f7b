"""What figures were measured on: without it they mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

_ROOT = Path(__file__).parents[2]


def environment(device: torch.device) -> dict[str, str]:
    """Machine, device, versions, commit and time, as text; what does not apply is left out."""
    found = {
        "cpu": _processor(),
        "cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "threads": str(torch.get_num_threads()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "labkit": _labkit(),
        "commit": _commit(),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    if device.type == "cuda":
        capability = ".".join(map(str, torch.cuda.get_device_capability(device)))
        found |= {
            "gpu": torch.cuda.get_device_name(device),
            "compute_capability": capability,
            "cuda": str(torch.version.cuda),
        }
    return found


def name_of(device: torch.device) -> str:
    """The device as people know it: the GPU's or the processor's name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()


def _processor() -> str:
    """The model as Linux names it; elsewhere what Python knows."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or "a processor without a name"


def _labkit() -> str:
    try:
        return version("labkit")
    except PackageNotFoundError:
        return "a checkout that is not installed"


def _commit() -> str:
    """The short hash, with + where the tree differs from it; "unknown" where this is no checkout of labkit."""
    if not (_ROOT / ".git").exists():
        return "unknown"
    try:
        head = _git("rev-parse", "--short", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(_ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
