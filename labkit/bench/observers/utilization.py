"""Utilization of the device while a run is timed, from the one sampler thread; each figure says what was sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Generic, TypeVar

from labkit.bench.observers.base import Observer
from labkit.bench.observers.utilization_cpu import CpuReading, cpu_summary
from labkit.bench.observers.utilization_gpu import GPU_FIGURES, gpu_summary
from labkit.bench.sampler_thread import SamplerThread
from labkit.errors import DeviceError
from labkit.gpu.nvml import NvmlSession
from labkit.gpu.nvml_readings import GpuGauges
from labkit.provenance import Figure, Origin

T = TypeVar("T")


class Utilization(Observer, Generic[T]):
    """Collects what the sampler reads between the borders of a run.

    A sampler that runs already is shared and left running; otherwise it runs for this run alone.
    """

    def __init__(self, sampler: SamplerThread[T], summary: Callable[[Sequence[T]], dict[str, Figure]]) -> None:
        """Watch with a sampler.

        Args:
            sampler: running or not.
            summary: samples, the first and the last taken at the borders of the run, to figures.
        """
        self._sampler, self._summary = sampler, summary
        self._samples: list[T] = []

    def before_run(self) -> None:
        """Take the first sample, and go on."""
        self._reader, self._owned = self._sampler.subscribe(), not self._sampler.running
        if self._owned:
            self._sampler.start()
        else:
            self._sampler.sample_now()

    def after_run(self) -> None:
        """Take the last sample.

        Raises:
            RuntimeError: a sample had raised.
        """
        self._sampler.sample_now()
        self._sampler.unsubscribe(self._reader)
        self._samples = self._reader.take()
        if self._owned:
            self._sampler.stop()

    def figures(self) -> dict[str, Figure]:
        """The figures of the summary, and of the sampling itself.

        ``sampler_n`` (samples after the first), ``sampler_interval_s``, ``sampler_overhead`` (share of one core).
        """
        return {
            **self._summary(self._samples),
            "sampler_n": Figure(max(0, len(self._samples) - 1), "1", Origin.MEASURED),
            "sampler_interval_s": Figure(self._sampler.interval_s, "s", Origin.EXACT),
            "sampler_overhead": self._sampler.overhead(),
        }


class NoUtilization(Observer):
    """Where no gauge can be read: the figures, each with the reason."""

    def __init__(self, reason: str) -> None:
        """Nothing will be read because of ``reason``."""
        self._reason = reason

    def figures(self) -> dict[str, Figure]:
        """Figures without values."""
        return {name: Figure(None, unit, None, self._reason) for name, unit in GPU_FIGURES.items()}


@contextmanager
def utilization(cuda_index: int | None = None, interval_s: float = 0.2) -> Iterator[Observer]:
    """An observer of a CUDA device, or of this process on the CPU.

    Args:
        cuda_index: n of ``cuda:n``; None: the CPU.
        interval_s: between two samples, 0.1 to 0.5 s.

    Yields:
        The observer. Where NVML is not there, or not this device, its figures have reasons.
    """
    if cuda_index is None:
        with _stopped(SamplerThread(CpuReading.now, interval_s)) as cpu:
            yield Utilization(cpu, cpu_summary)
        return
    try:
        session = NvmlSession()
    except DeviceError as error:
        yield NoUtilization(str(error))
        return
    with session:
        try:
            gauges = GpuGauges(session, session.device(cuda_index))
        except DeviceError as error:
            yield NoUtilization(str(error))
            return
        with closing(gauges), _stopped(SamplerThread(gauges.read, interval_s)) as gpu:
            yield Utilization(gpu, lambda samples: gpu_summary(samples, gauges.gpm.reason))


@contextmanager
def _stopped(sampler: SamplerThread[T]) -> Iterator[SamplerThread[T]]:
    """A sampler whose thread ends with the block, also when what is measured raises."""
    try:
        yield sampler
    finally:
        sampler.stop()
