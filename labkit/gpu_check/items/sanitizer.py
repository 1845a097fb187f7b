"""compute-sanitizer over the trials that go every way through each kernel; slow, and so the last."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from labkit.gpu_check.children import started
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.runner import Case, Found

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")

#: At most, and beyond the end of the run: less than what its watchdog grants.
_PATIENCE_S, _BEYOND_S = 90.0, 30.0
_WRONG = 9  # exit code where it finds something
#: An allocation for each tensor: in one block of torch's cache, a write beyond a tensor is inside of the block.
_UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")


def cases(lab: Lab) -> Sequence[Case]:
    """A tool each."""
    return [Case(tool, partial(_run, lab, tool)) for tool in TOOLS]


def _run(lab: Lab, tool: str) -> Found:
    program = sanitizer()
    if program is None:
        return {"ok": None, "reason": f"compute-sanitizer is neither on the PATH nor in {', '.join(_PLACES)}"}
    if not lab.on_gpu:
        return {"ok": None, "reason": "compute-sanitizer watches a GPU, and there is no CUDA device here"}
    command = [program, "--tool", tool, "--error-exitcode", str(_WRONG), *_small_run(lab)]
    patience_s = min(_PATIENCE_S, lab.left_s + _BEYOND_S)
    with started(command, _UNCACHED) as process:
        try:
            output, errors = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            return {"ok": None, "reason": f"{tool} took more than the {patience_s:.0f} s that were left for it"}
    return judged(process.returncode, output + errors)


def _small_run(lab: Lab) -> list[str]:
    return [sys.executable, "-m", "labkit.gpu_check.small_run", str(lab.device)]


def sanitizer() -> str | None:
    """Where compute-sanitizer is."""
    found = shutil.which("compute-sanitizer")
    others = (Path(place) / "compute-sanitizer" for place in _PLACES)
    return found or next((str(path) for path in others if path.is_file()), None)


def judged(code: int, output: str) -> Found:
    """What a run of it says.

    Raises:
        AssertionError: it found errors; the message has the first lines of them.
    """
    summary = re.search(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", output)
    if summary is None:
        last = (output.strip().splitlines() or ["no output"])[-1]
        return {"ok": None, "reason": f"no summary, exit code {code}: {last}"}
    errors = int(summary.group(1) or summary.group(2))
    lines = [line.strip("= ") for line in output.splitlines() if line.startswith("=========")]
    assert not errors, f"{errors} errors: {'; '.join(lines[1:5])}"
    assert code == 0, f"the run itself failed with exit code {code}: {output.strip().splitlines()[-1]}"
    return {"errors": errors}
