"""Indices, intrinsics, atomics and types of CUDA C mean on the CPU what they mean on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from labkit.gpu.host.buffers import poisoned
from labkit.gpu.host.program import Order, Program
from labkit.gpu.host.toolchain import Mode

Built = Callable[..., Program]
LANE = np.arange(32)
INTEGERS = {"int": np.int32, "unsigned": np.uint32, "unsigned long long": np.uint64}


@pytest.fixture(scope="module", params=list(Mode))
def program(request: pytest.FixtureRequest, built: Built) -> Program:
    return built("language.cu", request.param, "atomics<int>", "atomics<unsigned>")


def run(program: Program, kernel: str, block: tuple[int, ...], *arguments: object, grid: tuple[int, ...] = (1,)) -> str:
    done = program.launch(kernel, grid, block, arguments)  # type: ignore[arg-type]
    assert done.reports == ()
    assert done.completed
    return done.printed


def test_indices_in_three_dimensions(program: Program) -> None:
    out = poisoned((4, 3, 2, 4, 3, 2), np.int32)
    run(program, "indices", (2, 3, 4), out, grid=(2, 3, 4))
    axes = [np.arange(n) * scale for n, scale in zip(out.shape, (100000, 10000, 1000, 100, 10, 1), strict=True)]
    np.testing.assert_array_equal(out, sum(np.ix_(*axes)))


@pytest.mark.parametrize(("by", "width"), [(1, 32), (5, 32), (3, 8), (9, 8), (16, 16)])
def test_shuffles_read_the_lane_that_cuda_says(program: Program, by: int, width: int) -> None:
    out = poisoned((4, 32), np.int32)
    run(program, "shuffles", (32,), out, np.int32(by), np.int32(width))
    group = LANE // width * width
    np.testing.assert_array_equal(out[0], group + by % width)
    np.testing.assert_array_equal(out[1], np.where(LANE - by < group, LANE, LANE - by))
    np.testing.assert_array_equal(out[2], np.where(LANE + by >= group + width, LANE, LANE + by))
    np.testing.assert_array_equal(out[3], np.where(LANE ^ by >= group + width, LANE, LANE ^ by))


def test_shuffles_move_eight_bytes(program: Program) -> None:
    doubles, longs = poisoned(32, np.float64), poisoned(32, np.int64)
    run(program, "wide_shuffles", (32,), doubles, longs)
    np.testing.assert_array_equal(doubles, (LANE ^ 1) + 0.25)
    np.testing.assert_array_equal(longs, 2**40 + (LANE ^ 1))


def test_votes_of_a_warp(program: Program) -> None:
    value, out = (LANE % 3).astype(np.int32), poisoned((4, 32), np.uint32)
    run(program, "votes", (32,), out, value)
    masks = [sum(1 << lane for lane in LANE if value[lane] == v) for v in range(3)]
    assert set(out[0]) == {masks[1] | masks[2]}
    assert (set(out[1]), set(out[2])) == ({1}, {0})
    assert out[3].tolist() == [masks[v] for v in value]


def test_votes_of_a_block(program: Program) -> None:
    value, out = np.zeros(96, np.int32), poisoned(96, np.int32)
    value[[3, 40]] = 1
    run(program, "block_votes", (96,), out, value)
    assert set(out) == {2 + 2000}
    value[:] = 1
    run(program, "block_votes", (96,), out, value)
    assert set(out) == {96 + 1000 + 2000}


@pytest.mark.parametrize("kind", ["int", "unsigned"])
def test_atomics(program: Program, kind: str) -> None:
    dtype = INTEGERS[kind]
    out = np.array([0, 1000, 0, 77, 0, 511, 0, 0, 0, 99], dtype)
    old = poisoned(64, dtype)
    run(program, f"atomics<{kind}>", (64,), out, old, dtype(3))
    # 64 threads: +-3 each; 3 * 63 is the greatest; each of 8 bits is set, cleared, and flipped 8 times; one CAS wins
    assert out.tolist() == [192, 1000 - 192, 189, 0, 255, 256, 0, 1, 3, 63]
    assert sorted(old.tolist()) == sorted([99, *range(63)])  # what each exchange found


def test_bits_of_a_number(program: Program) -> None:
    out = poisoned(9, np.int32)
    run(program, "bits", (1,), out, np.int32(0b101000), np.float32(2.5))
    assert out.tolist() == [2, 26, 4, int(np.float32(2.5).view(np.int32)), 1, 3, 2, 2, 32]


def test_math(program: Program) -> None:
    out = poisoned(10, np.float32)
    run(program, "math", (1,), out, np.float32(0.5), np.float32(4))
    wanted = [math.exp(0.5), 0.5, 0.5, 0.5, 0.125, 3.0, 4.0, math.exp(0.5), 0.5, 1.0]
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


def test_vectors_constants_and_device_functions(program: Program) -> None:
    values = np.arange(16, dtype=np.float32)
    places = np.array([[3, 0], [0, 3]], np.int32)
    out = poisoned((2, 4), np.float32)
    run(program, "vectors", (2,), out, values, places)
    np.testing.assert_array_equal(out, [[15, 14, 13, 2 * (12 + 1)], [3, 2, 1, 2 * (0 + 8)]])


def test_16_bit_storage_travels_as_its_bits(program: Program) -> None:
    a, b = np.array([1.5, -2], np.float16), np.array([0x3FC0, 0xC000], np.uint16)  # 1.5 and -2 as bfloat16
    out = poisoned((2, 2), np.uint16)
    run(program, "halves", (2,), out, a, b)
    np.testing.assert_array_equal(out, [[0x3E00, 0x3FC0], [0xC000, 0xC000]])


def test_none_is_a_null_pointer(program: Program) -> None:
    out = poisoned(1, np.int32)
    run(program, "null_or_not", (1,), out, None)
    assert out.tolist() == [1]
    run(program, "null_or_not", (1,), out, np.zeros(0, np.float32))
    assert out.tolist() == [0]


def test_what_a_kernel_prints_is_kept(program: Program) -> None:
    assert run(program, "says", (3,), np.int32(3)) == "thread 0 of 3\nthread 1 of 3\nthread 2 of 3\n"


def test_orders_change_who_goes_first_and_the_random_one_is_repeatable(built: Built) -> None:
    program = built("language.cu", Mode.CHECKED, "atomics<int>", "atomics<unsigned>")

    def exchange(order: Order, seed: int) -> list[int]:
        out, old = np.zeros(10, np.int32), poisoned(64, np.int32)
        program.launch("atomics<int>", (1,), (64,), (out, old, np.int32(1)), order=order, seed=seed)
        return old.tolist()

    assert exchange(Order.FORWARD, 0) == [0, *range(63)]
    assert exchange(Order.REVERSE, 0) == [*range(1, 64), 0]
    assert exchange(Order.RANDOM, 1) == exchange(Order.RANDOM, 1)
    assert exchange(Order.RANDOM, 1) != exchange(Order.RANDOM, 2)
