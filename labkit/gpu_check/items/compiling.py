"""Every source compiled for the device by CuPy, all at once: the cases that follow find the kernels in CuPy's cache."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from labkit.gpu.catalog import KERNELS
from labkit.gpu_check.children import started
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
    failed = []
    with ExitStack() as stack:
        running = {
            op: stack.enter_context(
                started([sys.executable, "-c", _PROGRAM, op, source.name_expressions[0], str(lab.device.index or 0)])
            )
            for op, source in KERNELS.items()
        }
        for op, process in running.items():
            try:
                _, errors = process.communicate(timeout=max(0.0, start + _PATIENCE_S - time.perf_counter()))
            except subprocess.TimeoutExpired:
                failed.append(f"{op}: took more than {_PATIENCE_S} s")
                continue
            if process.returncode:
                failed.append(f"{op}: {(errors.strip().splitlines() or ['no message'])[-1]}")
    assert not failed, "; ".join(failed)
    return {"sources": len(running), "compile_s": time.perf_counter() - start}
