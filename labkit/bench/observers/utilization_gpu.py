"""Readings of a GPU during a run, made into figures: SM-active or time-active, and never one for the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from labkit.gpu.nvml_readings import GpuReading
from labkit.provenance import Figure, Origin

#: What a run on a GPU leaves behind: name -> unit.
GPU_FIGURES = {
    "utilization": "1",
    "utilization_max": "1",
    "sm_active": "1",
    "time_active": "1",
    "sm_occupancy": "1",
    "dram_active": "1",
    "memory_controller_active": "1",
    "power_w": "W",
    "power_max_w": "W",
    "energy_j": "J",
    "sm_clock_hz": "Hz",
    "memory_clock_hz": "Hz",
    "temperature_max_c": "°C",
    "throttled_share": "1",
    "sampled_used_bytes": "bytes",
}

#: Clocks that are low because nothing runs, or because somebody set them, are no throttling.
_NO_THROTTLING = {"idle", "application clocks", "display clocks"}

Weighted = list[tuple[float, float]]  # (value, seconds that it stands for)


def gpu_summary(samples: Sequence[GpuReading], no_gpm: str | None) -> dict[str, Figure]:
    """The figures of ``GPU_FIGURES``.

    Args:
        samples: the first and the last taken at the borders of the run.
        no_gpm: why the device has no SM-active; None where it has. Then ``utilization`` is time-active.
    """
    if len(samples) < 2:
        return {name: Figure(None, unit, None, "the run has no two samples") for name, unit in GPU_FIGURES.items()}
    name, what = ("sm_active", "SM-active") if no_gpm is None else ("time_active", f"time-active; {no_gpm}")
    return {
        "utilization": _mean(samples, name, what),
        "utilization_max": _most(samples, name, what),
        "sm_active": _mean(samples, "sm_active"),
        "time_active": _mean(samples, "time_active", "some kernel ran; not SM-active"),
        "sm_occupancy": _mean(samples, "sm_occupancy"),
        "dram_active": _mean(samples, "dram_active"),
        "memory_controller_active": _mean(samples, "memory_controller_active"),
        "power_w": _mean(samples, "power_w"),
        "power_max_w": _most(samples, "power_w"),
        "energy_j": _energy(samples),
        "sm_clock_hz": _mean(samples, "sm_clock_hz"),
        "memory_clock_hz": _mean(samples, "memory_clock_hz"),
        "temperature_max_c": _most(samples, "temperature_c"),
        "throttled_share": _throttled(samples),
        "sampled_used_bytes": _most(samples, "device_used_bytes", "memory of the whole device, all processes"),
    }


def _mean(samples: Sequence[GpuReading], gauge: str, what: str = "") -> Figure:
    """Over time: each reading stands for the time since the one before that had a value."""

    def over_time(readings: Weighted) -> float:
        return sum(value * seconds for value, seconds in readings) / sum(seconds for _, seconds in readings)

    return _of(samples, gauge, f"{what}; mean" if what else "mean", over_time)


def _most(samples: Sequence[GpuReading], gauge: str, what: str = "") -> Figure:
    return _of(samples, gauge, f"{what}; most" if what else "most", lambda readings: max(v for v, _ in readings))


def _of(samples: Sequence[GpuReading], gauge: str, what: str, reduce: Callable[[Weighted], float]) -> Figure:
    readings = list(_readings(samples, gauge))
    last: Figure = getattr(samples[-1], gauge)
    if not readings:
        return Figure(None, last.unit, None, last.reason or "only read before the run")
    return Figure(reduce(readings), last.unit, Origin.MEASURED, f"{what} of {len(readings)} samples")


def _readings(samples: Sequence[GpuReading], gauge: str) -> Iterator[tuple[float, float]]:
    """Values with the seconds they stand for. The first sample is the border: it tells of the time before the run."""
    since = samples[0].at_s
    for sample in samples[1:]:
        figure: Figure = getattr(sample, gauge)
        if figure.value is not None and sample.at_s > since:
            yield figure.value, sample.at_s - since
            since = sample.at_s


def _energy(samples: Sequence[GpuReading]) -> Figure:
    """What the counter has advanced by: exact where the driver has one, whatever the rate of sampling."""
    first, last = samples[0].energy_j, samples[-1].energy_j
    if first.value is None or last.value is None:
        return Figure(None, "J", None, first.reason or last.reason)
    return Figure(last.value - first.value, "J", Origin.MEASURED, "of the whole device, from its own counter")


def _throttled(samples: Sequence[GpuReading]) -> Figure:
    """Share of the samples in which clocks were held down."""
    known = [set(sample.throttle.value) for sample in samples[1:] if sample.throttle.value is not None]
    if not known:
        return Figure(None, "1", None, samples[-1].throttle.reason)
    counts = Counter(name for names in known for name in sorted(names - _NO_THROTTLING))
    share = sum(bool(names - _NO_THROTTLING) for names in known) / len(known)
    said = ", ".join(f"{name} in {many}" for name, many in counts.items()) or "none"
    return Figure(share, "1", Origin.MEASURED, f"clocks held down: {said} of {len(known)} samples")
