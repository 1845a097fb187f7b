"""Every source compiled for the device by CuPy, all at once: the cases that follow find the kernels in CuPy's cache."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial

from labkit.gpu.catalog import KERNELS
from labkit.gpu_check.items.kernels import no_gpu
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.runner import Case, Found

_PROGRAM = "import sys; from labkit.gpu.loader import kernel; kernel(sys.argv[1], sys.argv[2], int(sys.argv[3]))"

#: A compiler that takes longer hangs.
_PATIENCE_S = 120


def cases(lab: Lab) -> Sequence[Case]:
    """One: processes side by side, a source each."""
    return [Case("compile all sources", partial(_compile, lab))]


def _compile(lab: Lab) -> Found:
    if not lab.on_gpu:
        return no_gpu("CuPy compiles for the device at hand")
    start = time.perf_counter()
    running = {
        op: subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, op, source.name_expressions[0], str(lab.device.index or 0)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for op, source in KERNELS.items()
    }
    failed = []
    for op, process in running.items():
        try:
            _, errors = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            errors = f"took more than {_PATIENCE_S} s"
        if process.returncode:
            failed.append(f"{op}: {(errors.strip().splitlines() or ['no message'])[-1]}")
    assert not failed, "; ".join(failed)
    return {"sources": len(running), "compile_s": time.perf_counter() - start}
