"""What this machine can do, and why not: each thing labkit uses, found, or missing with the line that installs it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module, metadata

from labkit.errors import DeviceError
from labkit.gpu.nvml import GpuDevice, NvmlSession
from labkit.gpu.nvml_readings import GpuGauges
from labkit.units import GIB

_GPU_EXTRA = "pip install 'labkit[gpu]'"
_SEE_A_CARD = "name a card in CUDA_VISIBLE_DEVICES, and in a container start it with --gpus all"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for.

    Attributes:
        name: what.
        ok: it is there and works.
        found: version or amount; None where there is nothing.
        needed_for: what it serves.
        reason: why it is not ok, in one line; None where it is.
        fix: what to run, or to do; None where there is nothing to do.
    """

    name: str
    ok: bool
    found: str | None
    needed_for: str
    reason: str | None = None
    fix: str | None = None


def diagnose() -> tuple[Check, ...]:
    """Look for everything. Nothing is changed, and a broken installation is a finding, not an error.

    Cost: imports torch and CuPy, some seconds.
    """
    return tuple(
        check
        for look in (_python, _packages, _torch_cuda, _cupy, _nvrtc, _driver, _tools, _kernels, _host)
        for check in look()
    )


def doctor_text(checks: Iterable[Check]) -> str:
    """A line a check, aligned."""
    lines = []
    for check in checks:
        detail = check.found if check.ok else f"{check.reason}. Needed for {check.needed_for}; {check.fix}"
        lines.append(f"{'ok' if check.ok else 'missing':<7}  {check.name:<13}  {detail}")
    return "\n".join(lines)


def _python() -> Iterator[Check]:
    version = platform.python_version()
    ok = sys.version_info >= (3, 11)
    yield Check(
        "python",
        ok,
        f"{version} ({sys.executable})",
        "everything",
        None if ok else f"labkit needs Python 3.11 or newer, this is {version}",
        None if ok else "make PYTHON=python3.12 setup",
    )


def _packages() -> Iterator[Check]:
    for name, needed_for in (
        ("labkit", "everything"),
        ("numpy", "everything"),
        ("pydantic", "tuned configurations"),
        ("duckdb", "event tables in Parquet and CSV"),
        ("torch", "tensors, DataLoader, models"),
        ("plotly", "figures"),
        ("ipywidgets", "the panel of the notebooks"),
        ("jupyterlab", "the notebooks"),
        ("papermill", "labkit run"),
    ):
        yield _distribution(name, needed_for, f"pip install {name}")


def _distribution(name: str, needed_for: str, fix: str) -> Check:
    try:
        return Check(name, True, metadata.version(name), needed_for)
    except metadata.PackageNotFoundError:
        return Check(name, False, None, needed_for, "not installed", fix)


def _attempt(name: str, needed_for: str, fix: str, look: Callable[[], str]) -> Check:
    """A check that succeeds with a text and fails with an exception, whose first line is the reason."""
    try:
        return Check(name, True, look(), needed_for)
    except Exception as error:  # any kind of broken library is an answer here
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        return Check(name, False, None, needed_for, text, fix)


def _torch_cuda() -> Iterator[Check]:
    def look() -> str:
        torch = import_module("torch")
        if torch.version.cuda is None:
            raise RuntimeError(f"torch {torch.__version__} is built without CUDA")
        if not torch.cuda.is_available():
            raise RuntimeError(f"torch {torch.__version__} is built for CUDA {torch.version.cuda}, but finds no GPU")
        return f"CUDA {torch.version.cuda}, {torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"

    yield _attempt(
        "torch CUDA",
        "running models on the GPU",
        "on a machine with an NVIDIA GPU: pip install torch (the CUDA build)",
        look,
    )


def _cupy() -> Iterator[Check]:
    def look() -> str:
        return str(import_module("cupy").__version__)

    yield _attempt("cupy", "CUDA kernels", _GPU_EXTRA, look)


def _nvrtc() -> Iterator[Check]:
    def look() -> str:
        major, minor = import_module("cupy").cuda.nvrtc.getVersion()
        return f"{major}.{minor}"

    yield _attempt("nvrtc", "compiling CUDA kernels, with or without a GPU", _GPU_EXTRA, look)


def _driver() -> Iterator[Check]:
    """The driver, then a line a card."""
    needed_for = "GPUs and their gauges (NVML)"
    try:
        session = NvmlSession()
    except DeviceError as error:
        reason, _, fix = str(error).rstrip(".").partition(". ")
        yield Check("NVIDIA driver", False, None, needed_for, reason, fix)
        return
    with session:
        yield _devices(session, needed_for)
        for device in session.devices:
            yield Check(f"cuda:{device.index}", True, _device_text(session, device), "measuring on it")


def _devices(session: NvmlSession, needed_for: str) -> Check:
    """What the driver shows to this process; what CUDA_VISIBLE_DEVICES leaves out is said."""
    many = len(session.devices)
    parts = [f"driver {session.driver.value or session.driver.reason}", f"{many} device{'' if many == 1 else 's'}"]
    if session.hidden:
        names = os.environ.get("CUDA_VISIBLE_DEVICES")
        by = "MIG mode" if names is None else f"CUDA_VISIBLE_DEVICES={names}"
        parts.append(f"{session.hidden} hidden by {by}")
    found = ", ".join((*parts, *session.notes))
    if many:
        return Check("NVIDIA driver", True, found, needed_for)
    return Check("NVIDIA driver", False, None, needed_for, f"{found}: no GPU for this process", _SEE_A_CARD)


def _device_text(session: NvmlSession, device: GpuDevice) -> str:
    """Name, memory, MIG, and what its utilization will be."""
    with closing(GpuGauges(session, device)) as gauges:
        memory = gauges.read().device_total_bytes
        size = f"{memory.value / GIB:.0f} GiB" if memory.value is not None else f"memory unknown: {memory.reason}"
        kind = "MIG instance, " if device.instance is not None else ""
        gpm = gauges.gpm.reason
    active = "SM-active (GPM)" if gpm is None else f"time-active ({gpm})"
    return f"{device.name} ({size}), {kind}utilization as {active}"


def _tools() -> Iterator[Check]:
    for name, commands, package, needed_for in (
        ("node", ("node",), "nodejs", "tests of the widgets' JavaScript"),
        ("g++", ("g++",), "g++", "tests of CUDA kernels on the CPU"),
        ("chromium", ("chromium", "chromium-browser", "google-chrome"), "chromium", "tests in a browser"),
    ):
        path = next((found for command in commands if (found := shutil.which(command))), None)
        if path:
            yield Check(name, True, path, needed_for)
        else:
            yield Check(name, False, None, needed_for, "not on the PATH", f"sudo apt-get install {package}")


def _kernels() -> Iterator[Check]:
    """What can be proved about a CUDA kernel on this machine: ``labkit check-kernel`` says what it left out."""

    def compiles() -> str:
        nvrtc = import_module("labkit.gpu.nvrtc")
        nvrtc.compile_source('extern "C" __global__ void nothing() {}', "nothing.cu")  # with headers and all
        version = ".".join(map(str, nvrtc.nvrtc_version()))
        return f"NVRTC {version} for {', '.join(f'sm_{arch}' for arch in nvrtc.ARCHES)}"

    def ptx() -> str:
        import_module("labkit.gpu.nvrtc").cupy_options((), 90)
        return f"of sm_{import_module('labkit.gpu.verify.stages').PTX_ARCH}, on the CPU"

    def runs() -> str:
        return f"on the CPU, by {import_module('labkit.gpu.host.toolchain').compiler()[1]}"

    def on_device() -> str:
        torch = import_module("torch")
        if not torch.cuda.is_available():
            raise RuntimeError("torch finds no GPU, so nothing about its time is known")
        return str(torch.cuda.get_device_name(0))

    yield _attempt("kernels: code", "registers, spills and occupancy of CUDA kernels", _GPU_EXTRA, compiles)
    yield _attempt("kernels: PTX", "running what the compiler made of CUDA kernels", _GPU_EXTRA, ptx)
    yield _attempt("kernels: CPU", "results, races and bounds of CUDA kernels without a GPU", "make setup-tests", runs)
    yield _attempt(
        "kernels: GPU", "the time of CUDA kernels", "make gpu-check on a machine with an NVIDIA GPU", on_device
    )


def _host() -> Iterator[Check]:
    many = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check("processors", True, f"{many} ({platform.machine()})", "everything")

    def look() -> str:
        memory = import_module("psutil").virtual_memory()
        return f"{memory.available / GIB:.1f} GiB free of {memory.total / GIB:.1f} GiB"

    yield _attempt("memory", "large data sets", "pip install psutil", look)
