"""What a run was made on: device, driver, versions, commit, clocks. From torch, CuPy and nvidia-smi alone."""

from __future__ import annotations

import shutil
import subprocess
from importlib import import_module
from typing import Any

import numpy as np
import torch

from labkit.bench.environment import environment

#: Asked of nvidia-smi, and what the answers are called.
_ASKED = {
    "driver_version": "driver",
    "clocks.current.sm": "sm_clock",
    "clocks.max.sm": "sm_clock_max",
    "clocks.current.memory": "memory_clock",
    "clocks.max.memory": "memory_clock_max",
    "power.limit": "power_limit",
    "clocks_event_reasons.active": "clock_reasons",
    "mig.mode.current": "mig",
}

#: It answers in a second, or in ten where the driver is loaded for it.
_PATIENCE_S = 20.0


def why_no_gpu() -> str | None:
    """Why nothing can be checked here, in one line with the fix; None where it can."""
    if torch.version.cuda is None:
        return (
            f"torch {torch.__version__} is built without CUDA. Install the CUDA build on a machine with an NVIDIA GPU."
        )
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device. See labkit doctor."
    try:
        import_module("cupy")
    except ImportError as error:
        package = f"cupy-cuda{torch.version.cuda.split('.')[0]}x"
        return f"the kernels run through CuPy, which cannot be imported ({error}). Run pip install {package}."
    return None


def surroundings(device: torch.device) -> dict[str, Any]:
    """As text by name; what nobody can say is None."""
    found: dict[str, Any] = dict(environment(device)) | {"device": str(device), "numpy": np.__version__}
    if device.type != "cuda":
        return found | {"timing": "perf_counter", "driver": None, "cupy": None}
    cupy = import_module("cupy")
    properties = torch.cuda.get_device_properties(device)
    return found | {
        "timing": "CUDA events",
        "cupy": cupy.__version__,
        "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "cuda_driver_api": cupy.cuda.runtime.driverGetVersion(),
        "memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "fbgemm": _fbgemm(),
        **_driver(str(properties.uuid)),
    }


def _fbgemm() -> str | None:
    try:
        return str(import_module("fbgemm_gpu").__version__)
    except ImportError:
        return None


def _driver(uuid: str) -> dict[str, str | None]:
    """What nvidia-smi says of the device."""
    nothing: dict[str, str | None] = dict.fromkeys(_ASKED.values())
    program = shutil.which("nvidia-smi")
    if program is None:
        return nothing
    command = [program, f"--query-gpu={','.join(_ASKED)}", "--format=csv,noheader", f"--id=GPU-{uuid}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:  # of a driver that hangs: the checks say what that means, this is about names
        return nothing
    answers = [answer.strip() for answer in done.stdout.strip().split(",")]
    return dict(zip(_ASKED.values(), answers, strict=True)) if len(answers) == len(_ASKED) else nothing
