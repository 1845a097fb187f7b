"""The GPUs that the lab models: what their data sheets say, each figure with its source. Nothing here is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from labkit.errors import GpuError


class Precision(StrEnum):
    """What matrix products are computed in; everything else stays float32 in storage."""

    FLOAT32 = "float32"  # the FP32 units, no tensor cores
    TF32 = "tf32"  # tensor cores on float32 storage
    BF16 = "bf16"
    FP16 = "fp16"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its maker describes it. Peaks are dense: what structured sparsity would double is not counted.

    Attributes:
        name: as in ``GPUS``.
        sms: streaming multiprocessors.
        cores_per_sm: FP32 units of each; a unit does one fused multiply-add a clock.
        clock_hz: boost clock of the FP32 units.
        float32_flops: peak of the FP32 units, operations a second.
        tensor_flops: peak of the tensor cores by precision; a precision that they lack is not in it.
        memory_bytes: device memory.
        bandwidth_bytes_per_s: of the device memory.
        l2_bytes: second-level cache.
        source: title and section of the data sheet or white paper of these figures.
        notes: source of a figure that is not in ``source``, by attribute.
    """

    name: str
    sms: int
    cores_per_sm: int
    clock_hz: float
    float32_flops: float
    tensor_flops: dict[Precision, float]
    memory_bytes: int
    bandwidth_bytes_per_s: float
    l2_bytes: int
    source: str
    notes: dict[str, str] = field(default_factory=dict)

    def matmul_flops(self, precision: Precision) -> float:
        """Peak of matrix products in a precision.

        Raises:
            GpuError: the GPU has no tensor cores for it; the message names what it has.
        """
        if precision is Precision.FLOAT32:
            return self.float32_flops
        if precision not in self.tensor_flops:
            known = ", ".join([Precision.FLOAT32, *self.tensor_flops])
            raise GpuError(f"{self.name} has no tensor cores for {precision}: choose one of {known}.")
        return self.tensor_flops[precision]


_GB, _MIB, _T = 10**9, 2**20, 1e12
_VOLTA = "NVIDIA Tesla V100 GPU Architecture (white paper WP-08608-001), table 1"
_A100 = "NVIDIA A100 Tensor Core GPU Architecture (white paper, v1.0), table 4"
_A100_SHEET = "NVIDIA A100 Tensor Core GPU data sheet, specifications"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture (white paper, v1.04), tables 2 and 3"
_ADA = "NVIDIA Ada GPU Architecture (white paper, v2.1), appendix on L40"


def _tensor(half: float, tf32: float | None = None, *, bf16: bool = True) -> dict[Precision, float]:
    peaks = {Precision.FP16: half * _T}
    if bf16:
        peaks[Precision.BF16] = half * _T
    if tf32 is not None:
        peaks[Precision.TF32] = tf32 * _T
    return peaks


def _v100(name: str, memory_gb: int) -> Gpu:
    bandwidth, peaks = 900 * _GB, _tensor(125, bf16=False)
    return Gpu(name, 80, 64, 1.53e9, 15.7e12, peaks, memory_gb * _GB, bandwidth, 6 * _MIB, _VOLTA)


def _a100(name: str, memory_gb: int, bandwidth_gb: int, source: str) -> Gpu:
    bandwidth, peaks = bandwidth_gb * _GB, _tensor(312, 156)
    return Gpu(name, 108, 64, 1.41e9, 19.5e12, peaks, memory_gb * _GB, bandwidth, 40 * _MIB, source)


#: The table, oldest first. Memory is that of the data sheet in GB = 1e9 bytes; a little less can be allocated.
GPUS: dict[str, Gpu] = {
    g.name: g
    for g in (
        _v100("V100-16", 16),
        _v100("V100-32", 32),
        Gpu(
            "T4",
            *(40, 64, 1.59e9, 8.1e12, _tensor(65, bf16=False), 16 * _GB, 320 * _GB, 4 * _MIB),
            "NVIDIA T4 Tensor Core GPU data sheet, specifications",
            {
                "bandwidth_bytes_per_s": "NVIDIA T4 product brief PB-09256-001, memory (the data sheet says 300 GB/s)",
                "l2_bytes": "NVIDIA Turing GPU Architecture (white paper WP-09183-001), TU104",
            },
        ),
        Gpu(
            "A10",
            *(72, 128, 1.695e9, 31.2e12, _tensor(125, 62.5), 24 * _GB, 600 * _GB, 6 * _MIB),
            "NVIDIA A10 Tensor Core GPU data sheet, specifications",
            {"l2_bytes": "NVIDIA Ampere GA102 GPU Architecture (white paper, v2.1), GA102: 6144 KB"},
        ),
        _a100("A100-40", 40, 1555, _A100),
        _a100("A100-80", 80, 2039, f"{_A100}; memory and bandwidth of the 80 GB SXM part: {_A100_SHEET}"),
        Gpu(
            "L4",
            *(58, 128, 2.04e9, 30.3e12, _tensor(121, 60), 24 * _GB, 300 * _GB, 48 * _MIB),
            "NVIDIA L4 Tensor Core GPU data sheet, specifications (tensor peaks there are with sparsity: halved)",
            {"l2_bytes": "NVIDIA L4 product brief PB-11316-001; 48 MB, as the driver reports it"},
        ),
        Gpu(
            "L40S",
            *(142, 128, 2.52e9, 91.6e12, _tensor(362.05, 183), 48 * _GB, 864 * _GB, 96 * _MIB),
            "NVIDIA L40S data sheet, specifications (the dense figure of each pair)",
            {"l2_bytes": _ADA},
        ),
        Gpu(
            "H100",
            *(132, 128, 1.98e9, 66.9e12, _tensor(989.4, 494.7), 80 * _GB, 3352 * _GB, 50 * _MIB),
            f"{_H100}, SXM5; its tensor peaks are at 1.83 GHz",
        ),
        Gpu(
            "H100-PCIe",
            *(114, 128, 1.755e9, 51.2e12, _tensor(756.4, 378.2), 80 * _GB, 2000 * _GB, 50 * _MIB),
            f"{_H100}, PCIe",
        ),
        Gpu(
            "H200",
            *(132, 128, 1.98e9, 66.9e12, _tensor(989.4, 494.7), 141 * _GB, 4800 * _GB, 50 * _MIB),
            "NVIDIA H200 Tensor Core GPU data sheet, specifications, SXM (tensor peaks with sparsity: halved)",
            {"sms, cores_per_sm, clock_hz, l2_bytes": f"the processor is that of the H100 SXM5: {_H100}"},
        ),
        Gpu(
            "B200",
            *(148, 128, 1.965e9, 75e12, _tensor(2250, 1125), 180 * _GB, 8000 * _GB, 126 * _MIB),
            "NVIDIA HGX B200 data sheet, specifications of 8 GPUs, divided by 8 (tensor peaks with sparsity: halved)",
            {"sms, clock_hz, l2_bytes": "as the CUDA driver reports them (deviceQuery); the data sheet is silent"},
        ),
    )
}

#: Other names that people use; compared without case, spaces, dashes and the words of ``_NOISE``.
_ALIASES = {
    "v100": "V100-16",
    "v10016gb": "V100-16",
    "v10032gb": "V100-32",
    "a100": "A100-40",
    "a10040gb": "A100-40",
    "a10080gb": "A100-80",
    "h10080gb": "H100",
    "h10080gbhbm3": "H100",
    "h100pcie80gb": "H100-PCIe",
    "h200141gb": "H200",
    "b200180gb": "B200",
}
_NOISE = ("nvidia", "tesla", "sxm2", "sxm4", "sxm5", "sxm", "hgx", "dgx")


def gpu(name: str) -> Gpu:
    """The GPU of a name: as in ``GPUS`` in any spelling, or as ``nvidia-smi`` writes it.

    Raises:
        GpuError: not in the table; the message lists what is.
    """
    wanted = _plain(name)
    found = next((g for g in GPUS.values() if _plain(g.name) == wanted), None)
    if found is None and wanted in _ALIASES:
        found = GPUS[_ALIASES[wanted]]
    if found is None:
        raise GpuError(f"GPU {name!r} is not in the table: use one of {', '.join(GPUS)}.")
    return found


def _plain(name: str) -> str:
    text = "".join(c for c in name.lower() if c.isalnum())
    for word in _NOISE:
        text = text.replace(word, "")
    return text
