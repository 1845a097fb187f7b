"""The command lines of Nsight Systems and Nsight Compute for a run, and whether these tools are here."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labkit.experiments.profile_metrics import METRICS, SECTIONS

#: Kernels that ncu replays: each is run some twenty times for all metrics, so that a whole epoch would take hours.
LAUNCHES = 50

#: The range around everything that the lab measures (``bench/ranges.py``).
RANGE = "labkit"

NOTES = (
    "nsys shows when kernels run and what the host does in between; ncu replays single kernels: what bounds each.",
    "The backward pass has a thread of its own: --nvtx-push-pop-scope process counts it to the range all the same.",
    "Kernels inside a CUDA graph are shown one by one: --cuda-graph-trace=node, --graph-profiling node.",
    "ERR_NVGPUCTRPERM: counters need root, or NVreg_RestrictProfilingToAdminUsers=0; containers --cap-add=SYS_ADMIN.",
    "Times under a profiler are not those of the run without.",
)


@dataclass(frozen=True, slots=True)
class ProfilerRun:
    """One command line.

    Attributes:
        tool: ``nsys`` or ``ncu``.
        purpose: what it answers.
        command: its words.
        found: where the tool is on this machine; None where it is not on the PATH.
        install: how to get it; None where it is here.
    """

    tool: str
    purpose: str
    command: tuple[str, ...]
    found: str | None
    install: str | None


@dataclass(frozen=True, slots=True)
class Profile:
    """What to type.

    Attributes:
        run: the words of what is profiled.
        folder: of the reports; the profilers do not make it.
        profilers: the command lines, in the order of use.
    """

    run: tuple[str, ...]
    folder: str
    profilers: tuple[ProfilerRun, ...]


def notebook_run(notebook: str, parameters: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """The words that run a notebook headless, its result beside the reports."""
    labkit = ("labkit",) if shutil.which("labkit") else (sys.executable, "-m", "labkit")
    given = [word for name, value in parameters.items() for word in ("-p", name, value)]
    return (*labkit, "run", notebook, *given, "--out", folder)


def profile(
    run: Sequence[str], folder: str, name: str, *, strategy: str | None = None, launches: int = LAUNCHES
) -> Profile:
    """The command lines for a run. Nothing is started, nothing is written.

    Args:
        run: words of the run.
        folder: of the reports.
        name: of the reports, without ending.
        strategy: only kernels of this strategy; None: all that is measured.
        launches: kernels that ncu looks at.
    """
    report = str(Path(folder) / name)
    return Profile(tuple(run), folder, (*_nsys(run, report), _ncu(run, report, strategy or RANGE, launches)))


def _nsys(run: Sequence[str], report: str) -> tuple[ProfilerRun, ProfilerRun]:
    timeline = (
        *("nsys", "profile", "--trace=cuda,nvtx,osrt", "--cuda-graph-trace=node", "--sample=none", "--cpuctxsw=none"),
        *("--force-overwrite=true", f"--output={report}"),
    )
    tables = ("nvtx_gpu_proj_sum", "cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum")
    stats = ("nsys", "stats", f"--report={','.join(tables)}", f"{report}.nsys-rep")
    install = (
        "sudo apt-get install cuda-nsight-systems-13-0 (NVIDIA's repository), or developer.nvidia.com/nsight-systems"
    )
    return (
        _profiler("the timeline: gaps between kernels, copies, graph launches", (*timeline, *run), install),
        _profiler("its tables: GPU time by range and by kernel, CUDA calls, copies", stats, install),
    )


def _ncu(run: Sequence[str], report: str, within: str, launches: int) -> ProfilerRun:
    command = (
        *("ncu", "--target-processes", "all", "--graph-profiling", "node"),
        *(
            "--nvtx",
            "--nvtx-push-pop-scope",
            "process",
            "--nvtx-include",
            f"{within}/",
            "--launch-count",
            str(launches),
        ),
        *(word for section in SECTIONS for word in ("--section", section)),
        *("--metrics", ",".join(metric.name for metric in METRICS)),
        *("--force-overwrite", "--export", report),
    )
    install = (
        "sudo apt-get install cuda-nsight-compute-13-0 (NVIDIA's repository), or developer.nvidia.com/nsight-compute"
    )
    return _profiler("each kernel: what bounds it, bytes moved, occupancy", (*command, *run), install)


def _profiler(purpose: str, command: tuple[str, ...], install: str) -> ProfilerRun:
    found = shutil.which(command[0])
    return ProfilerRun(command[0], purpose, command, found, None if found else install)


def profile_report(found: Profile) -> dict[str, Any]:
    """Plain JSON types; ``line`` is what to paste into a shell."""
    return {
        "run": list(found.run),
        "prepare": _prepare(found),
        "profilers": [
            {**asdict(p), "command": list(p.command), "line": shlex.join(p.command)} for p in found.profilers
        ],
        "metrics": [asdict(metric) for metric in METRICS],
        "notes": list(NOTES),
    }


def profile_text(found: Profile) -> str:
    """Command lines to paste, then what the metrics mean."""
    lines = [_prepare(found), ""]
    for profiler in found.profilers:
        here = profiler.found or f"not on the PATH here; install: {profiler.install}"
        lines += [f"# {profiler.purpose} ({profiler.tool}: {here})", _wrapped(profiler.command), ""]
    width = max(len(metric.name) for metric in METRICS)
    lines += ["# What the metrics mean", *(f"{metric.name:<{width}}  {metric.meaning}" for metric in METRICS), ""]
    return "\n".join([*lines, *(f"# {note}" for note in NOTES)])


def _prepare(found: Profile) -> str:
    return shlex.join(("mkdir", "-p", found.folder))


def _wrapped(command: Sequence[str], most: int = 118) -> str:
    """A line for the shell, continued where it is long."""
    lines = [""]
    for word in map(shlex.quote, command):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return " \\\n".join(lines)
