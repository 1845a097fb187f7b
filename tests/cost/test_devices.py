"""The table of GPUs agrees with itself and answers to the names that people use."""

from __future__ import annotations

import pytest

from labkit.cost.devices import GPUS, Gpu, Precision, gpu
from labkit.errors import GpuError


@pytest.mark.parametrize("card", GPUS.values(), ids=list(GPUS))
def test_the_fp32_peak_is_two_operations_a_core_and_clock(card: Gpu) -> None:
    # a fused multiply-add is two operations; data sheets round to three digits
    assert card.float32_flops == pytest.approx(2 * card.cores_per_sm * card.sms * card.clock_hz, rel=0.02)


@pytest.mark.parametrize("card", GPUS.values(), ids=list(GPUS))
def test_tensor_cores_are_dense_and_in_order(card: Gpu) -> None:
    half = card.tensor_flops[Precision.FP16]
    # operations of all tensor cores of an SM in a clock: 1024 (Volta, Turing), 2048 (Ampere GA100), 4096 (Hopper), ..
    a_clock = half / card.sms / card.clock_hz
    assert min(abs(a_clock / 2**n - 1) for n in range(9, 14)) < 0.1
    if Precision.TF32 in card.tensor_flops:
        assert card.tensor_flops[Precision.TF32] == pytest.approx(half / 2, rel=0.02)
    assert half > card.float32_flops
    assert card.source


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100", "H100"),
        ("h100", "H100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("h100 sxm", "H100"),
        ("A100", "A100-40"),
        ("NVIDIA A100-SXM4-80GB", "A100-80"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-32GB", "V100-32"),
        ("NVIDIA H200", "H200"),
        ("l40s", "L40S"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_names_as_people_and_drivers_write_them(name: str, found: str) -> None:
    assert gpu(name) is GPUS[found]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        GpuError, match=r"GPU 'RTX 4090' is not in the table: use one of V100-16, V100-32, T4, A10, "
    ) as e:
        gpu("RTX 4090")
    assert "\n" not in str(e.value)


def test_a_precision_that_a_gpu_lacks_names_what_it_has() -> None:
    assert gpu("H100").matmul_flops(Precision.FLOAT32) == 66.9e12
    assert gpu("H100").matmul_flops(Precision.BF16) == 989.4e12
    with pytest.raises(GpuError, match=r"T4 has no tensor cores for bf16: choose one of float32, fp16\."):
        gpu("T4").matmul_flops(Precision.BF16)
