from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.errors import KernelArgumentError, KernelLaunchError
from labkit.gpu.arguments import Argument, Parameter, check_arguments, parameters_of
from labkit.gpu.catalog import KERNELS
from labkit.gpu.sources import kernel_text

SOURCE = """
// __global__ void scale(int wrong)
template <typename T, int V>
__global__ void __launch_bounds__(256, 4)  // a comment (with brackets)
    scale(T* __restrict__ out, const T* __restrict__ values, const long long* offsets, /* B */ int rows, float by) {}
__global__ void units(const uint4* values, unsigned long long fill) {}
"""
CPU = torch.device("cpu")


def test_parameters_are_read_from_the_source() -> None:
    assert parameters_of(SOURCE, "scale<bf16, 4>") == (
        Parameter("out", "bf16", True, False),
        Parameter("values", "bf16", True, True),
        Parameter("offsets", "long long", True, True),
        Parameter("rows", "int", False, False),
        Parameter("by", "float", False, False),
    )
    assert [parameter.base for parameter in parameters_of(SOURCE, "units")] == ["uint4", "unsigned long long"]


@pytest.mark.parametrize("expression", ["scale", "units<float>", "missing", "scal<float, 4>"])
def test_a_kernel_that_is_not_there(expression: str) -> None:
    with pytest.raises(KernelLaunchError, match="the source has no kernel"):
        parameters_of(SOURCE, expression)


@pytest.mark.parametrize("op", KERNELS)
def test_each_kernel_of_the_catalog_can_be_read(op: str) -> None:
    text = kernel_text(KERNELS[op].path)
    for expression in KERNELS[op].name_expressions:
        assert parameters_of(text, expression)


def scale(**changes: Argument) -> None:
    """Check a right call of scale, with some arguments changed."""
    right: dict[str, Argument] = {
        "out": torch.zeros(2, 4),
        "values": torch.zeros(3, 4),
        "offsets": torch.tensor([0, 1, 3]),
        "rows": np.int32(2),
        "by": np.float32(0.5),
    }
    check_arguments("scale", parameters_of(SOURCE, "scale<float, 4>"), list((right | changes).values()), CPU)


def test_what_is_right_passes() -> None:
    scale()
    scale(values=None)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("values", torch.zeros(3, 4, dtype=torch.float64), r"expected dtype torch.float32, got torch.float64; convert"),
        ("offsets", torch.zeros(3, dtype=torch.int32), r"expected dtype torch.int64, got torch.int32"),
        ("values", torch.zeros(4, 3).T, r"expected a contiguous tensor, got strides \(1, 3\); call .contiguous"),
        ("values", torch.zeros(3, 4, device="meta"), "expected a tensor on cpu, got meta; move it"),
        ("values", np.float32(3), "expected a tensor, got float32"),
        ("rows", 2, r"expected numpy.int32, got int; wrap it: numpy.int32\(...\)"),
        ("rows", np.int64(2), "expected numpy.int32, got numpy.int64"),
        ("by", 0.5, "expected numpy.float32, got float"),
        ("by", np.float64(0.5), "expected numpy.float32, got numpy.float64"),
        ("by", torch.zeros(()), "expected numpy.float32, got Tensor"),
    ],
)
def test_what_a_kernel_would_misread_is_a_type_error(name: str, wrong: object, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} of scale: {message}"):
        scale(**{name: wrong})  # type: ignore[arg-type]


def test_units_must_be_whole_and_aligned() -> None:
    parameters = parameters_of(SOURCE, "units")
    fill = np.uint64(0)
    check_arguments("units", parameters, (torch.zeros(8), fill), CPU)
    for wrong in (torch.zeros(9)[1:], torch.zeros(7)):
        with pytest.raises(KernelArgumentError, match="expected whole, aligned units of 16 bytes"):
            check_arguments("units", parameters, (wrong, fill), CPU)


def test_too_few_arguments() -> None:
    with pytest.raises(KernelArgumentError, match=r"units takes 2 arguments \(values, fill\), got 1"):
        check_arguments("units", parameters_of(SOURCE, "units"), (torch.zeros(8),), CPU)
