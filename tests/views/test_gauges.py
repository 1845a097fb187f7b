"""Gauges of a reading: named for what they are, and empty only with a reason."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from labkit.bench.machine_gauges import MachineReading
from labkit.gpu.nvml_answers import Answer
from labkit.gpu.nvml_readings import GpuReading
from labkit.provenance import Figure, Origin
from labkit.views.gauges import gauges_of


def known(value: float, unit: str = "1") -> Figure:
    return Figure(value, unit, Origin.MEASURED)


GPU = GpuReading(
    at_s=1.0,
    sm_active=known(0.25),
    sm_occupancy=known(0.1),
    dram_active=known(0.5),
    time_active=known(0.9),
    memory_controller_active=known(0.4),
    device_used_bytes=known(20 * 10**9, "bytes"),
    device_free_bytes=known(60 * 10**9, "bytes"),
    device_total_bytes=known(80 * 10**9, "bytes"),
    power_w=known(311.4, "W"),
    energy_j=known(1, "J"),
    sm_clock_hz=known(1e9, "Hz"),
    memory_clock_hz=known(1e9, "Hz"),
    temperature_c=known(50, "°C"),
    throttle=Answer((), None),
)
HOST = MachineReading(1.0, known(0.5), 6 * 10**9, 8 * 10**9, None)


def shown(gpu: GpuReading | None, **about: Any) -> dict[str, tuple[Any, Any, str, str]]:
    gauges: Any = SimpleNamespace(**{"gpu_name": "H100", "no_gpu": None, "no_gpm": None, **about})
    found = gauges_of(gauges, replace(HOST, gpu=gpu))
    return {g["title"]: (g["value"], g["top"], g["text"], g["why"]) for g in found}


def test_without_a_gpu_processor_and_memory_are_there_and_the_gpu_says_why() -> None:
    found = shown(None, no_gpu="NVML cannot be opened: no driver.")
    assert list(found) == ["CPU", "host memory", "GPU"]
    assert found["CPU"][:3] == (0.5, 1.0, "50.0 %")
    assert found["host memory"][:3] == (6 * 10**9, 8 * 10**9, "6.00 GB of 8.00 GB")
    assert found["GPU"] == (None, None, "–", "NVML cannot be opened: no driver.")


def test_a_gpu_has_sm_active_memory_power_and_dram() -> None:
    found = shown(GPU)
    assert list(found) == ["SM-active", "GPU memory", "power", "DRAM", "CPU", "host memory"]
    assert found["SM-active"][:3] == (0.25, 1.0, "25.0 %")
    assert found["GPU memory"][2] == "20.00 GB of 80.00 GB"
    assert found["power"][:3] == (311.4, None, "311 W")


def test_without_gpm_it_is_time_active_and_called_so_and_dram_is_empty_with_the_reason() -> None:
    why = "no GPM: this GPU is older than Hopper"
    found = shown(replace(GPU, dram_active=Figure(None, "1", None, why)), no_gpm=why)
    assert "SM-active" not in found
    assert found["time-active"][:3] == (0.9, 1.0, "90.0 %")
    assert found["time-active"][3] == f"H100: some kernel ran; not SM-active: {why}"
    assert found["DRAM"] == (None, 1.0, "–", why)
