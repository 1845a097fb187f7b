"""Sectors, active lanes and bank passes of patterns that can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from labkit.errors import KernelLaunchError
from labkit.gpu.host.program import Order, Program
from labkit.gpu.host.reports import HostRun, LineCounts
from labkit.gpu.host.toolchain import Mode
from tests.kernels.host.conftest import line_of

SOURCE = "patterns.cu"
BANKS = ("banks<float>", "banks<float2>", "banks<float4>")
Built = Callable[..., Program]


@pytest.fixture(scope="module")
def program(built: Built) -> Program:
    return built(SOURCE, Mode.CHECKED, *BANKS)


def launch(program: Program, kernel: str, *arguments: object) -> HostRun:
    run = program.launch(kernel, (1,), (32,), arguments, order=Order.LOCKSTEP)  # type: ignore[arg-type]
    assert run.reports == ()
    return run


def counts_at(run: HostRun, kernel: str, text: str, access: str = "load", space: str = "global") -> LineCounts:
    line = line_of(SOURCE, kernel, text)
    (found,) = (c for c in run.counts if (c.line, c.access, c.space) == (line, access, space))
    assert found.file == SOURCE
    return found


def floats(n: int) -> NDArray[np.float32]:
    return np.arange(n, dtype=np.float32)


# --- sectors of 32 bytes; buffers start at a multiple of 4096


@pytest.mark.parametrize(
    ("stride", "sectors"),
    [
        (1, 4),  # 32 lanes * 4 B = 128 B
        (2, 8),  # over 256 B, every second float
        (4, 16),
        (8, 32),  # a sector each
        (32, 32),
    ],
)
def test_sectors_of_a_strided_load(program: Program, stride: int, sectors: int) -> None:
    run = launch(program, "strided", floats(32), floats(32 * stride), np.int32(stride))
    load = counts_at(run, "strided", "out[threadIdx.x] =")
    assert (load.requests, load.lanes, load.sectors, load.ideal_sectors) == (1, 32, sectors, 4)
    store = counts_at(run, "strided", "out[threadIdx.x] =", "store")
    assert (store.requests, store.lanes, store.sectors, store.ideal_sectors) == (1, 32, 4, 4)
    assert (load.access_bytes, load.bank_passes, load.lanes_per_request) == (4, None, 32.0)


@pytest.mark.parametrize(("first", "sectors"), [(0, 4), (8, 4), (1, 5), (31, 5)])
def test_a_load_that_is_not_aligned_to_a_sector_touches_one_more(program: Program, first: int, sectors: int) -> None:
    run = launch(program, "shifted", floats(32), floats(64), np.int32(first))
    assert counts_at(run, "shifted", "out[threadIdx.x] =").sectors == sectors


def test_a_broadcast_is_one_sector(program: Program) -> None:
    load = counts_at(launch(program, "broadcast", floats(32), floats(1)), "broadcast", "out[threadIdx.x] =")
    assert (load.lanes, load.sectors, load.ideal_sectors) == (32, 1, 1)


def test_a_vector_is_one_access(program: Program) -> None:
    run = launch(program, "vectors", floats(128), floats(128))
    for access in ("load", "store"):
        found = counts_at(run, "vectors", "out[threadIdx.x] =", access)
        # 32 lanes * 16 B = 512 B
        assert (found.access_bytes, found.requests, found.sectors, found.ideal_sectors) == (16, 1, 16, 16)


@pytest.mark.parametrize(
    ("kernel", "sectors", "ideal"),
    [
        ("first_half", 2, 2),  # 64 B side by side
        ("even_lanes", 4, 2),  # 64 B over 128 B
    ],
)
def test_half_of_the_lanes(program: Program, kernel: str, sectors: int, ideal: int) -> None:
    load = counts_at(launch(program, kernel, floats(32), floats(32)), kernel, "out[threadIdx.x] =")
    assert (load.requests, load.lanes, load.sectors, load.ideal_sectors) == (1, 16, sectors, ideal)


def test_atomics_are_counted_as_requests_of_their_own(program: Program) -> None:
    bucket = (np.arange(32, dtype=np.int32) % 2) * 8  # two sectors
    out = np.zeros(16, np.int32)
    atomic = counts_at(launch(program, "adds_to", out, bucket), "adds_to", "atomicAdd", "atomic")
    assert (atomic.requests, atomic.lanes, atomic.sectors) == (1, 32, 2)
    assert (out[0], out[8]) == (16, 16)


# --- loops and branches


def test_lanes_that_left_a_ragged_loop_are_not_active(program: Program) -> None:
    length = np.arange(32, dtype=np.int32) % 9  # 0 .. 8: lanes in round i are those with length > i
    load = counts_at(launch(program, "ragged", floats(32), floats(9 * 32), length), "ragged", "sum += in")
    assert (load.requests, load.lanes) == (8, int(length.sum()))


def test_an_inner_ragged_loop_starts_again_with_all_its_lanes(program: Program) -> None:
    length = np.arange(32, dtype=np.int32) % 9
    values = floats(64 * 32)
    load = counts_at(launch(program, "nested", floats(32), values, length), "nested", "sum += in")
    # 4 rounds of the outer loop; in each, the lanes with length > i in round i: the rows i are 128 B side by side
    assert (load.requests, load.lanes) == (4 * 8, 4 * int(length.sum()))
    active = [length > i for i in range(8)]
    assert load.sectors == 4 * sum(len({lane // 8 for lane in np.flatnonzero(lanes)}) for lanes in active)


def test_both_sides_of_a_branch_are_requests_of_their_own(program: Program) -> None:
    run = launch(program, "either_or", floats(32), floats(96))
    then, other = counts_at(run, "either_or", "* 2"), counts_at(run, "either_or", "* 3")
    assert (then.requests, then.lanes, other.requests, other.lanes) == (1, 8, 1, 24)
    store = counts_at(run, "either_or", "out[threadIdx.x] =", "store")
    assert (store.requests, store.lanes) == (1, 32)  # the branches have met again


def test_lanes_that_left_are_in_no_request(program: Program) -> None:
    load = counts_at(
        launch(program, "leaves_early", floats(32), floats(32), np.int32(5)), "leaves_early", "out[threadIdx.x] ="
    )
    assert (load.requests, load.lanes, load.sectors) == (1, 5, 1)


def test_a_warp_that_strides_over_a_row(program: Program) -> None:
    out = np.zeros(1, np.float32)
    run = launch(program, "warp_sum", out, floats(70), np.int32(70))
    load = counts_at(run, "warp_sum", "sum += in")
    assert (load.requests, load.lanes, load.sectors) == (3, 70, 4 + 4 + 1)  # 32 + 32 + 6
    store = counts_at(run, "warp_sum", "out[0] = sum", "store")
    assert (store.requests, store.lanes) == (1, 1)
    np.testing.assert_array_equal(out, [70 * 69 / 2])


# --- passes over the 32 banks


@pytest.mark.parametrize(
    ("kernel", "place", "passes"),
    [
        ("banks<float>", np.arange(32), 1),
        ("banks<float>", np.arange(32) * 2, 2),
        ("banks<float>", np.arange(32) * 4, 4),
        ("banks<float>", np.arange(32) * 32, 32),  # all in one bank
        ("banks<float>", np.arange(32) * 33, 1),  # padded
        ("banks<float>", np.zeros(32), 1),  # the same word for all
        ("banks<float>", np.arange(32) % 2 * 32, 2),  # two words of one bank
        ("banks<float2>", np.arange(32), 2),  # 256 B: two halves of 128 B
        ("banks<float2>", np.arange(32) * 2, 4),  # in each half 16 lanes over 64 words, two in a bank
        ("banks<float4>", np.arange(32), 4),  # 512 B: four quarters of 128 B
        ("banks<float4>", np.arange(32) * 8, 32),  # in each quarter 8 lanes, 128 B apart, all in the same four banks
    ],
)
def test_passes_over_the_banks(program: Program, kernel: str, place: NDArray[np.int64], passes: int) -> None:
    run = launch(program, kernel, floats(32), place.astype(np.int32))
    load = counts_at(run, "banks", "value = tile", space="shared")
    assert (load.requests, load.lanes, load.bank_passes) == (1, 32, passes)
    assert (load.sectors, load.ideal_sectors) == (None, None)


def test_counts_need_lockstep_and_lockstep_the_checked_mode(program: Program, built: Built) -> None:
    arguments = (floats(32), floats(1))
    assert program.launch("broadcast", (1,), (32,), arguments).counts == ()
    fast = built(SOURCE, Mode.FAST, *BANKS)
    with pytest.raises(KernelLaunchError, match=r"lockstep needs a program built in mode checked, got fast"):
        fast.launch("broadcast", (1,), (32,), arguments, order="lockstep")  # type: ignore[arg-type]  # a key is accepted
