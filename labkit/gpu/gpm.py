"""GPM, the performance metrics of NVML: share of the SMs that work, occupancy, DRAM bandwidth, between two samples.

Source: NVML API Reference Guide, "GPM Functions": Hopper or newer; two samples lie at least 100 ms apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from labkit.gpu.nvml import GpuDevice
from labkit.gpu.nvml_answers import Answer, ask, tell
from labkit.provenance import Figure, Origin

#: Below it NVML's counters may not have been refreshed.
LEAST_INTERVAL_S = 0.1

#: Field -> number of the metric. Source: nvml.h, nvmlGpmMetricId_t; each is a percentage of the time between samples.
METRICS = {"sm_active": 2, "sm_occupancy": 3, "dram_active": 10}

_SUCCESS = 0


class Gpm:
    """The metrics of one device, each time over the interval since the reading before.

    Attributes:
        reason: why this device has none; None where it has.
    """

    def __init__(self, nvml: Any, device: GpuDevice, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask the device whether it has them, and make room for two samples.

        Args:
            nvml: the module ``pynvml``, open.
            device: a card or a MIG instance.
            clock: seconds.
        """
        self._nvml, self._device, self._clock = nvml, device, clock
        self._samples: list[Any] = []
        self._taken_s: float | None = None
        self.reason = self._why_not()

    def _why_not(self) -> str | None:
        support = ask(self._nvml, "nvmlGpmQueryDeviceSupport", self._device.card_handle)
        if support.value is None:
            return f"no GPM: {support.reason}"
        if not support.value.isSupportedDevice:
            return "no GPM: this GPU is older than Hopper"
        for _ in range(2):
            sample = ask(self._nvml, "nvmlGpmSampleAlloc")
            if sample.value is None:
                return f"no GPM: {sample.reason}"
            self._samples.append(sample.value)
        return None

    def read(self) -> dict[str, Figure]:
        """Shares of 1 over the time since the last reading, by name of ``METRICS``.

        The first reading has no interval: its figures have no value. One that comes too early is no reading.

        Cost: a call into the driver for the sample, one for the metrics.
        """
        if self.reason is not None:
            return _none(self.reason)
        now = self._clock()
        if self._taken_s is not None and now - self._taken_s < LEAST_INTERVAL_S:
            return _none(f"GPM needs {LEAST_INTERVAL_S:g} s between two samples")
        older, newer = self._samples
        sampled = self._sample(older)  # the older one is overwritten
        if sampled.value is None:
            return _none(f"GPM gave no sample: {sampled.reason}")
        self._samples, first, self._taken_s = [newer, older], self._taken_s is None, now
        return _none("GPM needs two samples, this is the first") if first else self._metrics()

    def _sample(self, into: Any) -> Answer[Any]:
        device, instance = self._device, self._device.instance
        if instance is None:
            return ask(self._nvml, "nvmlGpmSampleGet", device.handle, into)
        return ask(self._nvml, "nvmlGpmMigSampleGet", device.card_handle, instance.gpu_instance, into)

    def _metrics(self) -> dict[str, Figure]:
        wanted = self._nvml.c_nvmlGpmMetricsGet_t()
        wanted.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        wanted.numMetrics = len(METRICS)
        wanted.sample1, wanted.sample2 = self._samples
        for i, number in enumerate(METRICS.values()):
            wanted.metrics[i].metricId = number
        got = ask(self._nvml, "nvmlGpmMetricsGet", wanted)
        if got.value is None:
            return _none(f"GPM gave no metrics: {got.reason}")
        return {name: _share(wanted.metrics[i]) for i, name in enumerate(METRICS)}

    def close(self) -> None:
        """Give the samples back."""
        while self._samples:
            tell(self._nvml, "nvmlGpmSampleFree", self._samples.pop())


def _share(metric: Any) -> Figure:
    if metric.nvmlReturn != _SUCCESS:
        return Figure(None, "1", None, f"GPM does not have it on this GPU (NVML error {metric.nvmlReturn})")
    if not math.isfinite(metric.value):
        return Figure(None, "1", None, "GPM counted nothing between the two samples")
    return Figure(metric.value / 100, "1", Origin.MEASURED)


def _none(reason: str) -> dict[str, Figure]:
    return {name: Figure(None, "1", None, reason) for name in METRICS}
