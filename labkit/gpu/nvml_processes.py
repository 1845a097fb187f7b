"""Who else is on a device: without it, gauges of the device are taken for those of one process."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.gpu.nvml import GpuDevice, NvmlSession
from labkit.gpu.nvml_answers import Answer, ask
from labkit.provenance import Figure, Origin

#: NVML asks the driver, which knows no container: the numbers are never those of a container's own processes.
HOST_NUMBERS = "process numbers are those of the host: in a container they are not the ones that the container sees"


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process with a compute context on the device.

    Attributes:
        host_pid: its number on the host.
        used_bytes: device memory that it holds.
    """

    host_pid: int
    used_bytes: Figure


def processes(session: NvmlSession, device: GpuDevice) -> Answer[tuple[GpuProcess, ...]]:
    """The processes on a device, by number on the host; of a MIG instance its own only.

    Cost: two calls into the driver.
    """
    found = ask(session.nvml, "nvmlDeviceGetComputeRunningProcesses", device.handle)
    if found.value is None:
        return Answer(None, found.reason)
    return Answer(tuple(GpuProcess(p.pid, _bytes(p.usedGpuMemory)) for p in found.value))


def _bytes(used: int | None) -> Figure:
    if used is None:
        return Figure(None, "bytes", None, "the driver does not tell the memory of single processes")
    return Figure(used, "bytes", Origin.MEASURED)
