"""A reading of the machine as gauges: a number with its scale, or the reason why there is none."""

from __future__ import annotations

from typing import Any

from labkit.bench.machine_gauges import MachineGauges, MachineReading
from labkit.gpu.nvml_readings import GpuReading
from labkit.provenance import Figure
from labkit.units import format_bytes, format_share


def gauges_of(gauges: MachineGauges, reading: MachineReading) -> list[dict[str, Any]]:
    """The gauges in the order in which they are drawn.

    Returns:
        For each: ``title``; ``value`` and ``top``, the end of its scale (None: the largest seen); ``text``; ``why``:
        what it is, or why ``value`` is None. SM-active and time-active are never called by each other's name.
    """
    host = [
        _gauge("CPU", reading.cpu_share, 1.0, format_share(reading.cpu_share.value or 0)),
        {
            "title": "host memory",
            "value": reading.host_used_bytes,
            "top": reading.host_total_bytes,
            "text": f"{format_bytes(reading.host_used_bytes)} of {format_bytes(reading.host_total_bytes)}",
            "why": "not available to new processes; all processes of this machine",
        },
    ]
    if reading.gpu is None:
        return [*host, {"title": "GPU", "value": None, "top": None, "text": "–", "why": gauges.no_gpu or ""}]
    return [*_of_gpu(reading.gpu, gauges.no_gpm, gauges.gpu_name or "GPU"), *host]


def _of_gpu(gpu: GpuReading, no_gpm: str | None, name: str) -> list[dict[str, Any]]:
    title, active = ("SM-active", gpu.sm_active) if no_gpm is None else ("time-active", gpu.time_active)
    what = "share of the SMs that worked" if no_gpm is None else f"some kernel ran; not SM-active: {no_gpm}"
    total = gpu.device_total_bytes.value
    of = "" if total is None else f" of {format_bytes(total)}"
    return [
        _gauge(title, active, 1.0, format_share(active.value or 0), f"{name}: {what}"),
        _gauge("GPU memory", gpu.device_used_bytes, total, f"{format_bytes(gpu.device_used_bytes.value or 0)}{of}"),
        _gauge(
            "power", gpu.power_w, None, f"{gpu.power_w.value or 0:.0f} W", f"{name}; the scale ends at the most seen"
        ),
        _gauge("DRAM", gpu.dram_active, 1.0, format_share(gpu.dram_active.value or 0), "share of the DRAM's bandwidth"),
    ]


def _gauge(title: str, figure: Figure, top: float | None, text: str, what: str = "") -> dict[str, Any]:
    """``text`` is what is written where there is a value."""
    missing = figure.value is None
    why = figure.reason or what if missing else what or figure.reason or title
    return {"title": title, "value": figure.value, "top": top, "text": "–" if missing else text, "why": why}
