"""What a device reads now: one reading is all its gauges, each a figure with a value or with the reason why not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.gpu.gpm import Gpm
from labkit.gpu.nvml import GpuDevice, NvmlSession
from labkit.gpu.nvml_answers import Answer, ask, figure
from labkit.provenance import Figure

#: Bit -> why the clocks are lower than they could be. Source: nvml.h, nvmlClocksEventReasons.
THROTTLE_REASONS = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}

_OF_THE_CARD = "a MIG instance has no such gauge of its own; the card's counts its other instances too"


@dataclass(frozen=True, slots=True)
class GpuReading:
    """The gauges of a device at one moment.

    Attributes:
        at_s: the moment, on the clock that took it.
        sm_active: share of the SMs that worked since the reading before (GPM).
        sm_occupancy: resident warps of the most that fit, since the reading before (GPM).
        dram_active: share of the DRAM's bandwidth, since the reading before (GPM).
        time_active: share of the last sampling period of the driver in which some kernel ran; not SM-active.
        memory_controller_active: share of that period in which device memory was read or written.
        device_used_bytes: memory that all processes and the driver hold; neither allocated nor reserved by torch.
        device_free_bytes: the rest.
        device_total_bytes: all of it.
        power_w: now, or over the last second (from Ampere on).
        energy_j: since the driver was loaded: differences of it count.
        sm_clock_hz: of the SMs.
        memory_clock_hz: of device memory.
        temperature_c: of the GPU, degrees Celsius.
        throttle: names of the reasons why clocks are lower than they could be; empty: none.
    """

    at_s: float
    sm_active: Figure
    sm_occupancy: Figure
    dram_active: Figure
    time_active: Figure
    memory_controller_active: Figure
    device_used_bytes: Figure
    device_free_bytes: Figure
    device_total_bytes: Figure
    power_w: Figure
    energy_j: Figure
    sm_clock_hz: Figure
    memory_clock_hz: Figure
    temperature_c: Figure
    throttle: Answer[tuple[str, ...]]


class GpuGauges:
    """Reads one device, again and again."""

    def __init__(self, session: NvmlSession, device: GpuDevice, clock: Callable[[], float] = time.monotonic) -> None:
        """Gauges of a device of an open session."""
        self.device = device
        self.gpm = Gpm(session.nvml, device, clock)
        self._nvml, self._clock = session.nvml, clock

    def read(self) -> GpuReading:
        """All gauges now. Never raises: a gauge that fails is a figure with a reason.

        Cost: about ten calls into the driver.
        """
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        return GpuReading(
            at_s=self._clock(),
            **self.gpm.read(),
            time_active=figure(rates, "1", lambda r: r.gpu / 100),
            memory_controller_active=figure(rates, "1", lambda r: r.memory / 100),
            device_used_bytes=figure(memory, "bytes", lambda m: m.used),
            device_free_bytes=figure(memory, "bytes", lambda m: m.free),
            device_total_bytes=figure(memory, "bytes", lambda m: m.total),
            power_w=figure(self._of_card("nvmlDeviceGetPowerUsage"), "W", lambda mw: mw / 1e3),
            energy_j=figure(self._of_card("nvmlDeviceGetTotalEnergyConsumption"), "J", lambda mj: mj / 1e3),
            sm_clock_hz=self._hertz("NVML_CLOCK_SM"),
            memory_clock_hz=self._hertz("NVML_CLOCK_MEM"),
            temperature_c=figure(self._of_card("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU), "°C"),
            throttle=_names(self._of_card("nvmlDeviceGetCurrentClocksEventReasons")),
        )

    def close(self) -> None:
        """Give back what GPM holds; before the session is closed."""
        self.gpm.close()

    def _ask(self, function: str, *arguments: Any) -> Answer[Any]:
        return ask(self._nvml, function, self.device.handle, *arguments)

    def _of_card(self, function: str, *arguments: Any) -> Answer[Any]:
        """A gauge that only whole cards have."""
        return Answer(None, _OF_THE_CARD) if self.device.instance is not None else self._ask(function, *arguments)

    def _hertz(self, clock: str) -> Figure:
        answer = self._of_card("nvmlDeviceGetClockInfo", getattr(self._nvml, clock))
        return figure(answer, "Hz", lambda mhz: mhz * 1_000_000)


def _names(bits: Answer[int]) -> Answer[tuple[str, ...]]:
    """The reasons of a bit mask; a bit that is not in the table keeps its number."""
    if bits.value is None:
        return Answer(None, bits.reason)
    known = [name for bit, name in THROTTLE_REASONS.items() if bits.value & bit]
    rest = bits.value & ~sum(THROTTLE_REASONS)
    return Answer((*known, f"reason {rest:#x}") if rest else tuple(known))
