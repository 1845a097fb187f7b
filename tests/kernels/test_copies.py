from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.gpu.launch import launching_by
from labkit.gpu.ops.copies import copy_unit, fill_pattern, index_type, jagged_to_padded_cuda, padded_to_jagged_cuda
from labkit.reference import jagged as reference
from tests.kernels.cpu_device import CpuDevice
from tests.kernels.ragged import EVENTS, LENGTHS, OFFSETS

#: dtype, shape of an event, and the unit in which both copies move it.
KINDS = {
    "float32 x 4": (torch.float32, (4,), "uint4"),
    "float32 x 2": (torch.float32, (2,), "uint2"),
    "float32 x 3": (torch.float32, (3,), "unsigned"),
    "float32 x 2 x 6": (torch.float32, (2, 6), "uint4"),
    "int64": (torch.int64, (), "uint2"),
    "float16": (torch.float16, (), "unsigned short"),
    "bool": (torch.bool, (), "unsigned char"),
}


def events_of(dtype: torch.dtype, tail: tuple[int, ...]) -> torch.Tensor:
    numbers = torch.from_numpy(np.random.default_rng(0).integers(-90, 90, (EVENTS, *tail)))
    return numbers % 2 == 0 if dtype is torch.bool else numbers.to(dtype)


@pytest.mark.parametrize(("dtype", "tail", "unit"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("width", [1, 33, 140])
def test_there_and_back(
    cpu_device: CpuDevice, dtype: torch.dtype, tail: tuple[int, ...], unit: str, width: int
) -> None:
    values = events_of(dtype, tail)
    padded = jagged_to_padded_cuda(values, OFFSETS, width, 1.0)
    np.testing.assert_array_equal(padded.numpy(), reference.to_padded(values.numpy(), OFFSETS.numpy(), width, 1))
    back = padded_to_jagged_cuda(padded, OFFSETS, EVENTS, 0.0)
    np.testing.assert_array_equal(back.numpy(), reference.to_jagged(padded.numpy(), OFFSETS.numpy()))
    assert cpu_device.launched == [f"jagged_to_padded<{unit}, unsigned>", f"padded_to_jagged<{unit}, unsigned>"]


def test_bits_of_nan_and_negative_zero_survive(fast_device: CpuDevice) -> None:
    bits = torch.tensor([0x7FC01234, -0x80000000, 1, 0x7F800001], dtype=torch.int32)
    padded = jagged_to_padded_cuda(bits.view(torch.float32), torch.tensor([0, 1, 4]), 3, 0.0)
    assert padded.view(torch.int32).tolist() == [[0x7FC01234, 0, 0], [-0x80000000, 1, 0x7F800001]]


def test_no_rows_no_events(fast_device: CpuDevice) -> None:
    none = torch.zeros(1, dtype=torch.int64)
    assert jagged_to_padded_cuda(torch.zeros(0, 4), none, 3, 0.0).shape == (0, 3, 4)
    assert padded_to_jagged_cuda(torch.zeros(0, 3, 4), none, 0, 0.0).shape == (0, 4)
    assert not fast_device.launched
    empty = torch.zeros(3, dtype=torch.int64)
    assert jagged_to_padded_cuda(torch.zeros(0), empty, 2, 7.0).tolist() == [[7.0, 7.0], [7.0, 7.0]]
    assert padded_to_jagged_cuda(torch.zeros(2, 2), empty, 0, 0.0).shape == (0,)


def test_seventy_thousand_rows(fast_device: CpuDevice) -> None:
    rows = 70_000  # a grid along y would end at 65 535
    offsets = torch.arange(rows + 1)
    padded = jagged_to_padded_cuda(offsets[1:].clone(), offsets, 1, 0.0)
    assert torch.equal(padded[:, 0], offsets[1:])


def test_one_row_of_a_million_events(fast_device: CpuDevice) -> None:
    events = torch.arange(2**20)
    offsets = torch.tensor([0, 2**20])
    padded = jagged_to_padded_cuda(events, offsets, 1000, 0.0)
    assert torch.equal(padded[0], events[-1000:])
    back = padded_to_jagged_cuda(padded, offsets, 2**20, -1.0)
    assert torch.equal(back[-1000:], events[-1000:])
    assert (back[:-1000] == -1).all()


@pytest.mark.parametrize("width", [1, 33, 100_000])
def test_the_way_back_costs_what_is_jagged_and_not_the_rectangle(width: int) -> None:
    blocks: list[int] = []
    with launching_by(lambda op, expression, number, arguments, device: blocks.append(number)):
        padded_to_jagged_cuda(torch.empty(len(LENGTHS), width, 3), OFFSETS, EVENTS, 0.0)
    assert blocks == [-(-EVENTS * 3 // 1024)]


def test_rows_without_events_lie_between_anywhere(cpu_device: CpuDevice) -> None:
    lengths = [0] * 700 + [1] + [0] * 2 + [1023] + [0] + [2, 1024] + [0] * 700
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    padded = torch.arange(len(lengths) * 1000).view(-1, 1000)
    found = padded_to_jagged_cuda(padded, offsets, int(offsets[-1]), -1.0)
    np.testing.assert_array_equal(found.numpy(), reference.to_jagged(padded.numpy(), offsets.numpy(), -1))


def test_units_divide_rows_and_addresses() -> None:
    assert [copy_unit(row_bytes, 0) for row_bytes in (48, 24, 12, 6, 3)] == [
        *("uint4", "uint2", "unsigned", "unsigned short", "unsigned char")
    ]
    assert copy_unit(48, 16, 8) == "uint2"


def test_a_fill_is_repeated_to_eight_bytes() -> None:
    assert fill_pattern(-1, torch.int64) == np.uint64(2**64 - 1)
    assert fill_pattern(1, torch.uint8) == np.uint64(0x0101010101010101)
    assert fill_pattern(1.0, torch.float32) == np.uint64(0x3F8000003F800000)
    assert fill_pattern(1.0, torch.bfloat16) == np.uint64(0x3F803F803F803F80)


def test_indices_have_64_bits_from_two_to_the_32_units() -> None:
    assert index_type(2**32 - 257) == "unsigned"
    assert index_type(2**32 - 256) == "unsigned long long"


def test_the_longest_row_has_more_events_than_the_widest_rectangle_slots() -> None:
    assert max(LENGTHS) > 140
