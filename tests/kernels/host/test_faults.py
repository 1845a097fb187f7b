"""Each planted fault is found at its line, in every order of the threads; the right program beside it is silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from labkit.gpu.host.buffers import poisoned
from labkit.gpu.host.process import MOST_PRINTED_BYTES
from labkit.gpu.host.program import Order, Program
from labkit.gpu.host.reports import HostRun, ReportKind
from labkit.gpu.host.toolchain import Mode
from tests.kernels.host.conftest import TEMPLATES, line_of

SOURCE = "programs.cu"
ORDERS = list(Order)
Built = Callable[..., Program]


@pytest.fixture(scope="module")
def program(built: Built) -> Program:
    return built(SOURCE, Mode.CHECKED, *TEMPLATES)


def launch(program: Program, kernel: str, threads: int, *more: Any, grid: int = 1, **options: Any) -> HostRun:
    out = np.zeros(256, np.float32)
    return program.launch(kernel, (grid,), (threads,), (out, *more), **options)


RACES = [
    # kernel, threads, blocks, line of the access that is found late; the order decides which of the two that is
    ("barrier_missing", 64, 1, ("tile[threadIdx.x] =", "out[threadIdx.x] =")),
    ("second_barrier_missing", 64, 1, ("tile[threadIdx.x] =", "out[threadIdx.x] =")),
    ("same_cell", 64, 1, ("out[0] =",)),
    ("warp_unordered", 32, 1, ("tile[threadIdx.x] =", "out[threadIdx.x] =")),
    ("shuffle_is_no_barrier", 32, 1, ("out[threadIdx.x] =", "tile[threadIdx.x] =")),
    ("halves_ordered_apart", 32, 1, ("out[threadIdx.x] =", "tile[threadIdx.x] =")),
    ("blocks_add", 32, 4, ("out[0] +=",)),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kernel", "threads", "blocks", "texts"), RACES, ids=[race[0] for race in RACES])
def test_a_race_is_found_at_its_line_in_every_order(
    program: Program, kernel: str, threads: int, blocks: int, texts: tuple[str, ...], order: Order
) -> None:
    run = launch(program, kernel, threads, grid=blocks, order=order, seed=3)
    races = [report for report in run.reports if report.kind is ReportKind.RACE]
    assert races
    assert {report.file for report in races} == {SOURCE}
    assert {report.line for report in races} <= {line_of(SOURCE, kernel, text) for text in texts}
    assert run.completed


def test_a_race_names_both_threads_and_both_lines(program: Program) -> None:
    run = launch(program, "barrier_missing", 64)
    late_write, late_read = (report for report in run.reports if report.kind is ReportKind.RACE)
    write = line_of(SOURCE, "barrier_missing", "tile[threadIdx.x] =")
    # forward, threads 0 .. 31 read what 63 .. 32 write later; threads 32 .. 63 read what 31 .. 0 wrote
    assert late_write.text == (
        f"write-read race on byte 128 of tile: thread 32 of block 0 at {SOURCE}:{write}, thread 31 of block 0 at "
        f"{SOURCE}:{write + 1}, and nothing orders the two"
    )
    assert late_read.text == (
        f"read-write race on byte 124 of tile: thread 32 of block 0 at {SOURCE}:{write + 1}, thread 31 of block 0 at "
        f"{SOURCE}:{write}, and nothing orders the two"
    )
    assert (late_write.count, late_read.count) == (32, 32)


ORDERED = [
    ("barrier_there", 64, 1),
    ("second_barrier_there", 64, 1),
    ("own_cell", 64, 1),
    ("warp_ordered", 32, 1),
    ("halves_ordered_inside", 32, 1),
    ("blocks_add_atomically", 32, 4),
    ("reads_written", 32, 1),
    ("shuffle_of_all", 64, 1),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kernel", "threads", "blocks"), ORDERED, ids=[name for name, _, _ in ORDERED])
def test_the_right_program_is_silent_in_every_order(
    program: Program, kernel: str, threads: int, blocks: int, order: Order
) -> None:
    run = launch(program, kernel, threads, grid=blocks, order=order, seed=3)
    assert run.reports == ()
    assert run.completed


@pytest.mark.parametrize("order", ORDERS)
def test_the_last_block_may_read_what_the_others_fenced(program: Program, order: Order) -> None:
    out, parts, arrived = np.zeros(1, np.float32), poisoned(5, np.float32), np.zeros(1, np.uint32)
    run = program.launch("last_block_sums<true>", (5,), (1,), (out, parts, arrived), order=order)
    assert run.reports == ()
    np.testing.assert_array_equal(out, [15.0])  # 1 + 2 + 3 + 4 + 5


def test_without_the_fence_the_last_block_races(program: Program) -> None:
    out, parts, arrived = np.zeros(1, np.float32), poisoned(5, np.float32), np.zeros(1, np.uint32)
    run = program.launch("last_block_sums<false>", (5,), (1,), (out, parts, arrived))
    assert {report.kind for report in run.reports} == {ReportKind.RACE}
    assert run.reports[0].line == line_of(SOURCE, "last_block_sums", "sum += parts[i]")


def last_block(program: Program, kernel: str, order: Order) -> tuple[HostRun, np.ndarray]:
    out, parts, arrived = np.zeros(64, np.float32), poisoned(5 * 64, np.float32), np.zeros(1, np.uint32)
    return program.launch(kernel, (5,), (64,), (out, parts, arrived), order=order, seed=3), out


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "kernel",
    [
        "last_block_adds<true, true, false>",  # each fences what it wrote, a barrier, the ticket
        "last_block_adds<false, true, true>",  # a barrier, then the thread of the ticket fences for all
        "last_block_adds<true, true, true>",
    ],
)
def test_a_barrier_before_the_ticket_publishes_the_whole_block(program: Program, kernel: str, order: Order) -> None:
    run, out = last_block(program, kernel, order)
    assert run.reports == ()
    np.testing.assert_array_equal(out, np.full(64, 320.0))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "kernel",
    [
        "last_block_adds<true, false, false>",  # no barrier: the others may not have written yet
        "last_block_adds<true, false, true>",
        "last_block_adds<false, true, false>",  # no fence
    ],
)
def test_a_ticket_that_does_not_wait_for_the_block_is_a_race(program: Program, kernel: str, order: Order) -> None:
    run, _ = last_block(program, kernel, order)
    assert {report.kind for report in run.reports} == {ReportKind.RACE}
    assert {report.line for report in run.reports} == {line_of(SOURCE, "last_block_adds", "sum += parts[i]")}


@pytest.mark.parametrize("order", ORDERS)
def test_a_ticket_of_each_thread_publishes_what_the_thread_wrote(program: Program, order: Order) -> None:
    run, out = last_block(program, "last_thread_adds", order)
    assert run.reports == ()
    assert out[0] == 320.0


# --- bounds and alignment


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("kernel", "fault"),
    [
        ("reads_one_beyond", "reads 4 bytes at byte 400 of argument 1 (const float*), which has 400 bytes"),
        ("writes_one_beyond", "writes 4 bytes at byte 400 of argument 0 (float*), which has 400 bytes"),
    ],
)
def test_one_element_beyond_is_out_of_bounds(program: Program, kernel: str, fault: str, order: Order) -> None:
    out, values = np.zeros(100, np.float32), np.arange(100, dtype=np.float32)
    run = program.launch(kernel, (4,), (32,), (out, values, np.int32(100)), order=order)
    (report,) = run.reports
    assert report.kind is ReportKind.OUT_OF_BOUNDS
    assert report.line == line_of(SOURCE, kernel, "out[i] =")
    assert fault in report.text
    assert not run.completed


def test_a_read_up_to_the_last_element_is_in_bounds(program: Program) -> None:
    out, values = np.zeros(100, np.float32), np.arange(100, dtype=np.float32)
    assert program.launch("reads_in_bounds", (4,), (32,), (out, values, np.int32(100))).reports == ()
    np.testing.assert_array_equal(out, values)


def test_static_shared_memory_has_bounds(program: Program) -> None:
    (report,) = launch(program, "shared_beyond", 32).reports
    assert report.kind is ReportKind.OUT_OF_BOUNDS
    assert "thread 31 of block 0 writes 4 bytes at byte 128 of tile, which has 128 bytes" in report.text


def test_an_overrun_from_one_shared_array_into_the_next_is_out_of_bounds(program: Program) -> None:
    assert launch(program, "shared_into_the_next<32>", 32, np.int32(0)).reports == ()
    (report,) = launch(program, "shared_into_the_next<32>", 32, np.int32(1)).reports
    assert report.kind is ReportKind.OUT_OF_BOUNDS
    assert "thread 31 of block 0 writes 4 bytes at byte 128 of second, which has 128 bytes" in report.text


def test_dynamic_shared_memory_has_the_bounds_of_the_launch(program: Program) -> None:
    assert launch(program, "dynamic_shared", 32, shared_bytes=128).reports == ()
    (report,) = launch(program, "dynamic_shared", 32, shared_bytes=124).reports
    assert report.kind is ReportKind.OUT_OF_BOUNDS
    assert "thread 31 of block 0 writes 4 bytes at byte 124 of dynamic shared memory, which has 124" in report.text


def test_a_wild_write_is_out_of_bounds_and_ends_only_the_launch(program: Program) -> None:
    (report,) = launch(program, "writes_far_away", 1).reports
    assert report.kind is ReportKind.OUT_OF_BOUNDS
    assert "which is in no buffer" in report.text


@pytest.mark.parametrize(("first", "faulty"), [(0, False), (4, False), (1, True), (2, True)])
def test_a_vector_load_must_be_aligned(program: Program, first: int, faulty: bool) -> None:
    values = np.arange(16, dtype=np.float32)
    run = launch(program, "vector_from", 1, values, np.int32(first))
    assert [report.kind for report in run.reports] == [ReportKind.MISALIGNED] * faulty
    if faulty:
        assert f"reads 16 bytes at byte {4 * first} of argument 1" in run.reports[0].text
        assert run.reports[0].line == line_of(SOURCE, "vector_from", "float4 v =")


def test_a_write_through_a_const_parameter_is_reported(program: Program) -> None:
    run = program.launch("writes_const", (1,), (4,), (np.ones(4, np.float32),))
    assert [(report.kind, report.count) for report in run.reports] == [(ReportKind.CONST_WRITE, 4)]


# --- shared memory that nobody wrote


@pytest.mark.parametrize("order", ORDERS)
def test_a_read_of_shared_memory_that_nobody_wrote(program: Program, order: Order) -> None:
    run = launch(program, "reads_unwritten", 32, grid=3, order=order)
    (report,) = (report for report in run.reports if report.kind is ReportKind.UNINITIALISED)
    assert "reads byte 28 of tile" in report.text  # 4 * 7
    assert report.count == 3  # once in each block: what one block wrote is nothing to the next


# --- waiting


@pytest.mark.parametrize("order", ORDERS)
def test_threads_of_a_block_that_meet_at_two_barriers(program: Program, order: Order) -> None:
    (report,) = launch(program, "barriers_in_branches", 32, order=order).reports
    assert report.kind is ReportKind.DIVERGENT_BARRIER
    assert "at another one" in report.text


def test_a_barrier_that_some_threads_never_reach(program: Program) -> None:
    (report,) = launch(program, "barrier_after_return", 32, np.int32(20)).reports
    assert report.kind is ReportKind.DIVERGENT_BARRIER
    assert "12 of 32 threads of block 0 have exited" in report.text
    assert launch(program, "barrier_after_return", 32, np.int32(32)).reports == ()


@pytest.mark.parametrize("order", ORDERS)
def test_lanes_that_wait_for_each_other_at_different_places_are_a_deadlock(program: Program, order: Order) -> None:
    run = launch(program, "barrier_and_shuffle", 32, order=order)
    (report,) = run.reports
    assert report.kind is ReportKind.DEADLOCK
    assert "16 threads wait at a block barrier, 16 at a warp operation, 0 have exited" in report.text
    assert not run.completed


def test_a_caller_that_its_mask_leaves_out(program: Program) -> None:
    (report,) = launch(program, "mask_without_caller", 32).reports
    assert report.kind is ReportKind.MASK
    assert "thread 16 of block 0" in report.text
    assert launch(program, "mask_without_caller", 16).reports == ()


def test_a_shuffle_from_a_lane_that_has_exited(program: Program) -> None:
    (report,) = launch(program, "shuffle_of_exited", 32, np.int32(20)).reports
    assert report.kind is ReportKind.SHUFFLE
    # lanes 4 .. 15 read 20 .. 31, which have exited; 16 .. 19 read 0 .. 3
    assert report.count == 12
    assert launch(program, "shuffle_of_exited", 32, np.int32(32)).reports == ()


@pytest.mark.parametrize("mode", list(Mode))
def test_a_loop_without_end_is_ended(built: Built, mode: Mode) -> None:
    program = built(SOURCE, mode, *TEMPLATES)
    run = launch(program, "never_ends", 1, timeout_s=0.5)
    (report,) = run.reports
    assert report.kind is ReportKind.TIMEOUT
    assert "did not end within 0.5 s" in report.text
    assert not run.completed
    if mode is Mode.CHECKED:  # where every access calls the runtime, it knows where it is
        first = line_of(SOURCE, "never_ends", "while (out[0]")
        assert report.line in (first, first + 1)
        assert f"thread 0 of block 0 is at {SOURCE}:{report.line}" in report.text


@pytest.mark.parametrize("mode", list(Mode))
def test_a_kernel_that_prints_without_end_is_ended(built: Built, mode: Mode) -> None:
    program = built(SOURCE, mode, *TEMPLATES)
    run = launch(program, "prints_forever", 1, timeout_s=60)
    (report,) = run.reports
    assert report.kind is ReportKind.OUTPUT
    assert "printed more than 1 MiB" in report.text
    assert len(run.printed) == MOST_PRINTED_BYTES
    assert not run.completed
