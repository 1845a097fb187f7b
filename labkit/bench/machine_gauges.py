"""The gauges of this machine at one moment: processor and memory of the host, and of a GPU where there is one."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil

from labkit.errors import DeviceError
from labkit.gpu.nvml import NvmlSession
from labkit.gpu.nvml_readings import GpuGauges, GpuReading
from labkit.provenance import Figure, Origin


@dataclass(frozen=True, slots=True)
class MachineReading:
    """What was read at one moment.

    Attributes:
        at_s: the moment.
        cpu_share: processor time of all processes over wall time x cores, since the reading before.
        host_used_bytes: host memory that is not available to new processes.
        host_total_bytes: all of it.
        gpu: of one GPU; None where there is none.
    """

    at_s: float
    cpu_share: Figure
    host_used_bytes: int
    host_total_bytes: int
    gpu: GpuReading | None


class MachineGauges:
    """Reads the machine, again and again; close it afterwards.

    Attributes:
        gpu_name: of the GPU that is read; None where there is none.
        no_gpu: why there is none; None where there is one.
        no_gpm: why the GPU has no SM-active; None where it has.
    """

    def __init__(self, cuda_index: int = 0) -> None:
        """Open what there is; what is missing is a reason, never an error."""
        self._session: NvmlSession | None = None
        self._gpu: GpuGauges | None = None
        self.gpu_name: str | None = None
        self.no_gpu: str | None = None
        self.no_gpm: str | None = None
        self._first = True
        try:
            self._session = NvmlSession()
            self._gpu = GpuGauges(self._session, self._session.device(cuda_index))
            self.gpu_name, self.no_gpm = self._gpu.device.name, self._gpu.gpm.reason
        except DeviceError as error:
            self.no_gpu = str(error)

    def read(self) -> MachineReading:
        """All gauges now. Cost: three files of /proc, and about ten calls into the driver where there is a GPU."""
        share, memory = psutil.cpu_percent(None) / 100, psutil.virtual_memory()
        cpu = Figure(share, "1", Origin.MEASURED, "all processes, all cores of this machine")
        if self._first:  # there is no reading before
            cpu, self._first = Figure(None, "1", None, "needs two readings, this is the first"), False
        return MachineReading(
            at_s=time.monotonic(),
            cpu_share=cpu,
            host_used_bytes=memory.total - memory.available,
            host_total_bytes=memory.total,
            gpu=None if self._gpu is None else self._gpu.read(),
        )

    def close(self) -> None:
        """Give back what NVML holds."""
        if self._gpu is not None:
            self._gpu.close()
        if self._session is not None:
            self._session.close()
        self._gpu = self._session = None
