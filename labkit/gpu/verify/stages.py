"""The stages of a proof; each adds what it finds to one collection. Threads may run several at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from labkit.errors import KernelCompileError, LabkitError, MissingPackageError, PtxError, PtxUnsupportedError
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.program import Order
from labkit.gpu.host.reports import LineCounts, ReportKind
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.launch import launching_by
from labkit.gpu.nvrtc import Compiled, compile_source
from labkit.gpu.ptx.parse import parse
from labkit.gpu.resources import Resources, resources_of
from labkit.gpu.verify.findings import Findings, compile_findings, summed, with_place
from labkit.gpu.verify.programs import Programs, storage_of
from labkit.gpu.verify.proof import Finding, FindingKind
from labkit.gpu.verify.ptx_device import PtxDevice
from labkit.gpu.verify.stand_in import CpuDevice, LaunchEnded
from labkit.gpu.verify.trial import Trial
from labkit.gpu.verify.trials import trials

#: Whose PTX is run, and for which kernels of 16-bit storage are compiled.
PTX_ARCH = 90

#: Wrong trials after which a stage has seen enough.
_MOST_WRONG = 12

#: How long a launch that is known to hang runs once more, to name its line.
_LOCATE_S = 5.0


@dataclass
class Stages:
    """A source under proof.

    Attributes:
        op: key in the catalog.
        path: of the source.
        text: of it, headers put in.
        programs: for the CPU.
        timeout_s: of each launch.
        findings: what is wrong.
        not_proved: what was not looked at, and why.
        executed: architectures whose PTX was run.
        cut: some results were not compared, because the source cannot be built or launched, or a launch ended early.
        hung: the trial in which a launch did not end; the stages stop there.
    """

    op: str
    path: Path
    text: str
    programs: Programs
    timeout_s: float
    findings: Findings = field(default_factory=Findings)
    not_proved: list[str] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    cut: bool = False
    hung: Trial | None = None
    _done: dict[int, Compiled] = field(default_factory=dict)
    _compiling: dict[int, Lock] = field(default_factory=dict)

    def compile(self, arch: int) -> Mapping[str, Resources]:
        """What NVRTC makes of it: registers and shared memory of each kernel; spills and local memory are wrong."""
        try:
            compiled = self._compiled(arch)
            found = resources_of(compiled)
        except KernelCompileError as error:
            for finding in compile_findings(error):
                self.findings.add(finding)
            return {}
        except MissingPackageError as error:
            self.not_proved.append(f"compiling for sm_{arch}, and its PTX: {error}")
            return {}
        resources = {expression: found[mangled] for expression, mangled in compiled.names.items()}
        for expression, taken in resources.items():
            if taken.spill_bytes or taken.stack_bytes:
                text = (
                    f"{expression} keeps {taken.stack_bytes} bytes a thread in local memory on sm_{arch}, of which "
                    f"{taken.spill_bytes} bytes are stored and loaded because registers ran out"
                )
                self.findings.add(Finding(FindingKind.LOCAL_MEMORY, None, None, text), expression)
        return resources

    def run(self, mode: Mode, order: Order) -> None:
        """Every trial in one mode and order of the threads, compared with the reference."""
        device = CpuDevice(
            lambda _, expression: self.programs.of(mode, expression),
            order,
            timeout_s=self.timeout_s,
            sources={self.op: self.text},
        )
        wrong = 0
        for trial in self._chosen(mode, order):
            if self.hung is not None:
                break
            try:
                with self._told(trial), launching_by(device.launch):
                    for compared in trial.run():
                        if compared.difference:
                            wrong += 1
                            text = f"{compared.difference} ({trial.name}, threads {order})"
                            self.findings.add(Finding(FindingKind.WRONG_RESULT, None, None, text), compared.what)
            except LaunchEnded:
                wrong = _MOST_WRONG
                self.cut |= mode is Mode.FAST
                if device.launched and any(r.kind is ReportKind.TIMEOUT for r in device.launched[-1][1].reports):
                    self.hung = trial
            if wrong >= _MOST_WRONG:
                break
        for _, run in device.launched:
            self.findings.add_reports(run.reports)
        self._covered({expression for expression, _ in device.launched}, f"run with threads {order}, {mode}")

    def _chosen(self, mode: Mode, order: Order) -> Iterator[Trial]:
        for trial in trials(self.op):
            if trial.sample or (
                mode is not Mode.ASAN and (not trial.once or (mode, order) == (Mode.FAST, Order.FORWARD))
            ):
                yield trial

    def locate_hang(self) -> None:
        """The line at which the launch that hangs is; the checked program knows it."""
        trial = self.hung
        if trial is None or any(f.kind == ReportKind.TIMEOUT and f.line for f in self.findings.all):
            return
        device = CpuDevice(
            lambda _, expression: self.programs.of(Mode.CHECKED, expression),
            timeout_s=min(self.timeout_s, _LOCATE_S),
            sources={self.op: self.text},
        )
        with suppress(LaunchEnded), self._told(trial), launching_by(device.launch):
            list(trial.run())
        for _, run in device.launched:
            self.findings.add_reports(run.reports)

    def count(self) -> tuple[LineCounts, ...]:
        """Memory requests by source line of the sample trials."""
        device = CpuDevice(
            lambda _, expression: self.programs.of(Mode.CHECKED, expression),
            Order.LOCKSTEP,
            timeout_s=self.timeout_s,
            sources={self.op: self.text},
        )
        for trial in self._samples:
            try:
                with self._told(trial), launching_by(device.launch):
                    list(trial.run())
            except LaunchEnded:
                break
        for _, run in device.launched:
            self.findings.add_reports(run.reports)
        return summed(counts for _, run in device.launched for counts in run.counts)

    def run_ptx(self) -> None:
        """The sample trials by the PTX that NVRTC made: it must do what the source does."""
        try:
            parsed = parse(self._compiled(PTX_ARCH).ptx)
        except (MissingPackageError, KernelCompileError):
            return  # ``compile`` says it
        except PtxUnsupportedError as error:
            self.not_proved.append(f"the compiled program: {error}")
            return
        if "__CUDA_ARCH__" in self.text:
            self.not_proved.append(
                f"what __CUDA_ARCH__ chooses for other GPUs: the code for sm_{PTX_ARCH} alone can be run here"
            )
        names = self._compiled(PTX_ARCH).names
        device = PtxDevice(lambda expression: parsed[names[expression]], self.text)
        try:
            for trial in self._samples:
                with self._told(trial), launching_by(device.launch):
                    for compared in trial.run():
                        if compared.difference:
                            text = f"{compared.difference} by the compiled program ({trial.name})"
                            self.findings.add(Finding(FindingKind.PTX, None, None, text), compared.what)
        except PtxUnsupportedError as error:
            self.not_proved.append(f"the compiled program: {error}")
        except PtxError as error:
            self.findings.add(with_place(FindingKind.PTX, str(error)))
        except LaunchEnded:
            pass
        self.executed.append(f"sm_{PTX_ARCH}")
        self._covered(device.launched, f"run as PTX of sm_{PTX_ARCH}")

    def _covered(self, launched: Collection[str], how: str) -> None:
        """Kernels of the catalog that a stage did not launch were not looked at, unless it stopped at a fault."""
        left = [expression for expression in KERNELS[self.op].name_expressions if expression not in launched]
        if left and not self.cut and not self.findings.wrong:
            self.not_proved.append(f"{how}: no trial launched {', '.join(left)}")

    @cached_property
    def _samples(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in trials(self.op) if trial.sample)

    @property
    def _compiles(self) -> bool:
        """NVRTC, which decides what CUDA C is, takes the source."""
        try:
            self._compiled(PTX_ARCH)
        except (KernelCompileError, MissingPackageError):
            return False
        return True

    def _compiled(self, arch: int) -> Compiled:
        with self._compiling.setdefault(arch, Lock()):
            if arch not in self._done:
                expressions = KERNELS[self.op].name_expressions
                if arch != PTX_ARCH:
                    expressions = tuple(name for name in expressions if storage_of(name) in ("", "float"))
                self._done[arch] = compile_source(self.text, self.path.name, arch=arch, name_expressions=expressions)
            return self._done[arch]

    @contextmanager
    def _told(self, trial: Trial) -> Iterator[None]:
        """What the host code or a compiler refuses is a finding, not an error of the proof."""
        try:
            yield
        except KernelCompileError as error:
            self.cut = True
            if self._compiles:
                self.not_proved.append(
                    f"running it on the CPU: NVRTC takes the source, the CPU runner does not: {error}"
                )
            else:
                for finding in compile_findings(error):
                    self.findings.add(finding)
            raise LaunchEnded(trial.name) from None
        except (PtxError, LaunchEnded):
            raise
        except LabkitError as error:
            self.cut = True
            self.findings.add(with_place(FindingKind.LAUNCH, f"{error} ({trial.name})"))
            raise LaunchEnded(trial.name) from None
