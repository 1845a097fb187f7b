"""prove: everything that can be known about a source of an op without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from labkit.errors import KernelLaunchError
from labkit.gpu.arguments import parameters_of
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.program import Order
from labkit.gpu.host.reports import ReportKind
from labkit.gpu.host.toolchain import Mode, compiler
from labkit.gpu.nvrtc import ARCHES
from labkit.gpu.sources import includes, kernel_text
from labkit.gpu.verify.programs import Programs
from labkit.gpu.verify.proof import Finding, FindingKind, Proof
from labkit.gpu.verify.stages import Stages
from labkit.gpu.verify.stand_in import poisoned_allocations
from labkit.gpu.verify.trials import trials

_T = TypeVar("_T")

#: Told of each stage that has ended.
Told = Callable[[str], object]

_WORKERS = 2  # programs and compilers run outside of this process or of the interpreter's lock

#: What only other orders of the threads, the sanitizers and the compiled program can show.
_DEEPER = {
    "threads reverse": (Mode.FAST, Order.REVERSE),
    "threads random": (Mode.FAST, Order.RANDOM),
    "sanitizers": (Mode.ASAN, Order.FORWARD),
}
_DEEP = "other orders of the threads, sanitizers, PTX"


def stage_count(arches: Sequence[int] = ARCHES) -> int:
    """Stages of a proof in which nothing is wrong."""
    return len(arches) + len(_DEEPER) + 4


def prove(
    op: str,
    path: Path | None = None,
    *,
    source: str | None = None,
    arches: Sequence[int] = ARCHES,
    timeout_s: float = 20.0,
    cache: Path | None = None,
    told: Told = lambda _: None,
) -> Proof:
    """Look for everything that is wrong with a source of an op.

    It is compiled, run on ragged rows in three orders of the threads and compared with the float64 reference, run with
    every access checked and under sanitizers, its requests are counted, and the PTX that NVRTC made is run beside it.

    Args:
        op: key in the catalog.
        path: of the source; None: the shipped one.
        source: a changed text of that file, taken in its place.
        arches: compute capabilities to compile for; kernels of 16-bit storage are compiled for 9.0 alone.
        timeout_s: of each launch on the CPU; one that is not over by then hangs.
        cache: folder of finished CPU programs; None: the usual one.
        told: called with the name of each stage that has ended, from several threads; ``stage_count`` says how many.

    Returns:
        What is wrong; a source that does not compile, crashes or hangs is a report in it. A source without the op's
        kernels is that one report, and nothing else is tried.

    Raises:
        KernelLaunchError: no such op.
        MissingPackageError: no g++ here, so that nothing can be run.
        DataFileError: the file is missing, or is no text.

    Cost: about 15 s on two idle cores.
    """
    if op not in KERNELS:
        raise KernelLaunchError(f"there is no op {op!r}: expected one of {', '.join(KERNELS)}.")
    compiler()
    where = path or KERNELS[op].path
    text = kernel_text(where, source)
    if missing := _missing_kernels(op, text):
        return _without_kernels(op, where.name, missing)
    stages = Stages(op, where, text, Programs(op, where, source, cache), timeout_s)
    with poisoned_allocations(), ThreadPoolExecutor(_WORKERS) as pool:

        def begin(name: str, stage: Callable[..., _T], *how: object) -> Future[_T]:
            return pool.submit(_ended, told, name, stage, *how)

        forward = begin("threads forward", stages.run, Mode.FAST, Order.FORWARD)
        checked = begin("races and bounds", stages.run, Mode.CHECKED, Order.RANDOM)
        compiled = {arch: begin(f"compile sm_{arch}", stages.compile, arch) for arch in arches}
        for stage in (forward, checked):
            stage.result()
        counted = None if stages.findings.hung else begin("counts", stages.count)
        if stages.hung is not None:
            begin("where it hangs", stages.locate_hang).result()
            stages.not_proved.append(f"counts, {_DEEP}: not tried, the kernel does not end")
        elif stages.findings.wrong:
            stages.not_proved.append(f"{_DEEP}: not tried, something is wrong already")
        else:
            deeper = [begin(name, stages.run, *how) for name, how in _DEEPER.items()]
            for stage in [*deeper, begin("PTX", stages.run_ptx)]:
                stage.result()
        resources = {f"sm_{arch}": stage.result() for arch, stage in compiled.items()}
        counts = () if counted is None else counted.result()
    return Proof(
        op=op,
        file=where.name,
        kernels=KERNELS[op].name_expressions,
        equal=_equal(stages),
        reports=stages.findings.all,
        counts=counts,
        resources={arch: found for arch, found in resources.items() if found},
        trials=len(trials(op)),
        not_proved=tuple(dict.fromkeys(stages.not_proved)),
        executed=tuple(stages.executed),
    )


def _equal(stages: Stages) -> bool | None:
    """Whether all results are right; None where none is known to be wrong, and not all could be computed."""
    unequal = {FindingKind.WRONG_RESULT, ReportKind.CRASH, ReportKind.TIMEOUT, ReportKind.OUTPUT}
    if any(report.kind in unequal for report in stages.findings.all):
        return False
    return None if stages.cut else True


def _missing_kernels(op: str, text: str) -> tuple[str, ...]:
    """Name expressions of which the source declares no kernel; none where a header is missing, which may have it."""
    if includes(text):
        return ()
    missing = []
    for expression in KERNELS[op].name_expressions:
        try:
            parameters_of(text, expression)
        except KernelLaunchError:
            missing.append(expression)
    return tuple(missing)


def _without_kernels(op: str, file: str, missing: Sequence[str]) -> Proof:
    names = ", ".join(dict.fromkeys(expression.partition("<")[0] for expression in missing))
    text = f"{file} has no kernel {names} as {op} needs it: keep the names and template parameters, or name its op"
    return Proof(
        op=op,
        file=file,
        kernels=KERNELS[op].name_expressions,
        equal=None,
        reports=(Finding(FindingKind.LAUNCH, None, None, text),),
        counts=(),
        resources={},
        trials=0,
        not_proved=("everything else: not tried without the kernels",),
    )


def _ended(told: Told, name: str, stage: Callable[..., _T], *how: object) -> _T:
    result = stage(*how)
    told(name)
    return result
