"""Lanes that part and meet, wait for one another and answer one another; every count here is worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from labkit.errors import PtxError
from labkit.gpu.ptx.runner import run
from tests.kernels.ptx.programs import compute, kernel, launched, params

Array = NDArray[Any]
F32 = np.float32


def index_of(counts: Any, opcode: str, nth: int = 0) -> int:
    found = [i for i, instruction in enumerate(counts.kernel.code) if instruction.opcode.text == opcode]
    return found[nth]


def test_branches_part_the_lanes_and_they_meet_again() -> None:
    out = np.zeros(32, np.int32)
    body = """setp.lt.u32 %p1, %r0, 10; @%p1 bra LOW;
    mov.u32 %r1, 100; mov.u32 %r1, 200; bra JOIN;
    LOW: mov.s32 %r1, 1;
    JOIN: add.s32 %r2, %r1, %r0; st.global.u32 [%q0], %r2;"""
    counts = launched(body, out)
    lane = np.arange(32)
    assert_array_equal(out, np.where(lane < 10, 1, 200) + lane)
    assert counts.of(index_of(counts, "mov.s32")).lanes == 10
    join = counts.of(index_of(counts, "add.s32"))
    assert (join.issues, join.lanes) == (1, 32)  # together again


LOOP = """mov.u32 %r1, 0; ld.global.u32 %r2, [%q1];
    HEAD: setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE; add.u32 %r1, %r1, 1; bra HEAD;
    DONE: st.global.u32 [%q0], %r1;"""


def test_a_loop_runs_as_often_as_its_longest_lane() -> None:
    trips = (np.arange(64) % 7).astype(np.uint32)
    trips[40] = 23
    out = np.zeros(64, np.uint32)
    counts = launched(LOOP, out, trips, block=64)
    assert_array_equal(out, trips)
    body = counts.of(index_of(counts, "add.u32"))
    assert body.issues == 6 + 23  # first warp 6, second 23
    assert body.lanes == trips.sum()
    done = counts.of(index_of(counts, "st.global.u32"))
    assert (done.issues, done.lanes) == (2, 64)


def test_nested_loops_meet_at_the_end_of_the_inner_one() -> None:
    trips = np.array([0, 1, 2, 5] * 8, np.uint32)
    out = np.zeros(32, np.uint32)
    body = """ld.global.u32 %r2, [%q1]; mov.u32 %r3, 0; mov.u32 %r5, 0;
    OUTER: mov.u32 %r1, 0;
    INNER: setp.ge.u32 %p1, %r1, %r2; @%p1 bra NEXT; add.u32 %r1, %r1, 1; add.s32 %r5, %r5, 1; bra INNER;
    NEXT: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; @%p2 bra OUTER;
    st.global.u32 [%q0], %r5;"""
    counts = launched(body, out, trips)
    assert_array_equal(out, 3 * trips)
    inner, outer = counts.of(index_of(counts, "add.u32", 0)), counts.of(index_of(counts, "add.u32", 1))
    assert (inner.issues, inner.lanes) == (3 * 5, 3 * int(trips.sum()))
    assert (outer.issues, outer.lanes) == (3, 3 * 32)


def test_lanes_that_left_take_no_part() -> None:
    out = np.full(40, 7, np.int32)
    counts = launched("setp.ge.u32 %p1, %r0, 33; @%p1 ret; mov.u32 %r1, 1; st.global.u32 [%q0], %r1;", out, block=40)
    assert_array_equal(out, [1] * 33 + [7] * 7)
    assert counts.of(index_of(counts, "st.global.u32")).issues == 2  # the second warp for one lane


def test_a_guard_takes_lanes_out_but_the_warp_still_issues() -> None:
    counts = launched("setp.lt.u32 %p1, %r0, 3; @!%p1 mov.f32 %f1, 0f00000000;", np.zeros(64, F32), block=64)
    guarded = counts.of(index_of(counts, "mov.f32"))
    assert (guarded.issues, guarded.lanes) == (2, 61)


def test_a_loop_without_end_is_stopped() -> None:
    with pytest.raises(PtxError, match="still running after the greatest number of steps"):
        launched("L: add.s32 %r1, %r0, 1; bra L;", np.zeros(32, F32))


def test_blocks_and_threads_know_where_they_are() -> None:
    out = np.zeros((2, 3, 2, 4, 3, 2), np.int32)  # bz by bx tz ty tx
    body = """ld.param.u64 %q0, [p0];
    mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y; mad.lo.s32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %ntid.z; mov.u32 %r3, %tid.z; mad.lo.s32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %ntid.y; mov.u32 %r3, %tid.y; mad.lo.s32 %r1, %r1, %r2, %r3;
    mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r1, %r1, %r2, %r3;
    mad.wide.u32 %q1, %r1, 4, %q0; st.global.u32 [%q1], %r1;"""
    run(kernel(body, params("u64")), (2, 3, 2), (2, 3, 4), [out])
    assert_array_equal(out.ravel(), np.arange(out.size))


def test_more_blocks_than_run_side_by_side() -> None:
    out = np.zeros(100, np.int32)
    body = "ld.param.u64 %q0, [p0]; mov.u32 %r1, %ctaid.x; mad.wide.u32 %q1, %r1, 4, %q0; st.global.u32 [%q1], %r1;"
    run(kernel(body, params("u64")), (100,), (1024,), [out])
    assert_array_equal(out, np.arange(100))


# --- barriers


EXCHANGE = """.shared .align 4 .b8 s[256]; mov.u64 %q10, s; mad.wide.u32 %q11, %r0, 4, %q10;
    st.shared.u32 [%q11], %r0; bar.sync 0; sub.s32 %r1, 63, %r0; mad.wide.u32 %q12, %r1, 4, %q10;
    ld.shared.u32 %r2, [%q12]; st.global.u32 [%q0], %r2;"""


def test_a_barrier_lets_a_warp_see_what_another_wrote() -> None:
    out = np.zeros(64, np.uint32)
    # the second warp takes a detour that is longer: without a barrier it would come too late
    detour = "setp.lt.u32 %p1, %r0, 32; @%p1 bra GO; mov.u32 %r9, 0; bra GO; GO: "
    launched(detour + EXCHANGE, out, block=64)
    assert_array_equal(out, 63 - np.arange(64))


def test_a_barrier_waits_for_those_that_loop_longer() -> None:
    body = """mov.u32 %r1, 0; shr.u32 %r2, %r0, 3;
    HEAD: setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE; add.u32 %r1, %r1, 1; bra HEAD;
    DONE: bar.sync 0; activemask.b32 %r3; st.global.u32 [%q0], %r3;"""
    out = np.zeros(64, np.uint32)
    launched(body, out, block=64)
    assert_array_equal(out, np.full(64, 2**32 - 1))


def test_threads_that_have_left_are_not_waited_for() -> None:
    out = np.zeros(64, np.uint32)
    launched("setp.ge.u32 %p1, %r0, 40; @%p1 ret; bar.sync 0; mov.u32 %r1, 1; st.global.u32 [%q0], %r1;", out, block=64)
    assert_array_equal(out, [1] * 40 + [0] * 24)
    # they leave after the others have begun to wait
    late = "setp.lt.u32 %p1, %r0, 40; @%p1 bra WAIT; mov.u32 %r2, 0; ret; WAIT: bar.sync 0; mov.u32 %r1, 2;"
    launched(late + "st.global.u32 [%q0], %r1;", out, block=64)
    assert_array_equal(out, [2] * 40 + [0] * 24)


def test_barriers_at_two_places_are_a_deadlock() -> None:
    body = "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; ret; A: bar.sync 0; mov.u32 %r1, 0;"
    with pytest.raises(PtxError, match=r"deadlock: threads wait at .* and .* for others that never come"):
        launched(body, np.zeros(64, F32), block=64)


def test_a_block_votes() -> None:
    out = np.zeros(128, np.uint32)
    body = """mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r0, 5; setp.eq.u32 %p2, %r9, 1; and.pred %p1, %p1, %p2;
    bar.red.popc.u32 %r1, 0, %p1; bar.red.or.pred %p3, 0, %p1; bar.red.and.pred %p4, 0, !%p1;
    selp.u32 %r2, 10, 0, %p3; selp.u32 %r3, 100, 0, %p4; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
    mul.wide.u32 %q9, %r9, 256; add.s64 %q9, %q9, %q0; st.global.u32 [%q9], %r1;"""
    launched(body, out, block=64, grid=2)
    assert_array_equal(out, [100] * 64 + [11] * 64)


# --- shuffles


def shuffled(mode: str, values: Array, step: int, clamp: int) -> Array:
    """PTX ISA, "shfl.sync", lane by lane."""
    out = np.array(values)
    for lane in range(32):
        segment, limit = clamp >> 8 & 31, clamp & 31
        last, first = (lane & segment) | (limit & ~segment), lane & segment
        source = {"up": lane - step, "down": lane + step, "bfly": lane ^ step, "idx": first | (step & ~segment)}[mode]
        inside = source >= last if mode == "up" else source <= last
        out[lane] = values[source] if inside else values[lane]
    return out


@pytest.mark.parametrize("step", [0, 1, 3, 16, 31])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("width", [32, 8])
def test_shuffles(mode: str, step: int, width: int) -> None:
    values = np.arange(100, 132, dtype=np.uint32)
    clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
    got = compute(f"shfl.sync.{mode}.b32 %x, %a, {step}, {clamp}, -1;", values)
    assert_array_equal(got, shuffled(mode, values, step, clamp))


def test_a_shuffle_says_whether_its_source_was_inside() -> None:
    values = np.arange(32, dtype=np.uint32)
    assert_array_equal(compute("shfl.sync.down.b32 %r9|%x, %a, 4, 31, -1;", values, out=bool), np.arange(32) < 28)


def test_a_butterfly_sums_a_warp() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1000, 96).astype(np.uint32)
    rounds = "".join(f"shfl.sync.bfly.b32 %r1, %r2, {d}, 31, -1; add.u32 %r2, %r2, %r1;" for d in (16, 8, 4, 2, 1))
    out = np.zeros(96, np.uint32)
    counts = launched(f"ld.global.u32 %r2, [%q1]; {rounds} st.global.u32 [%q0], %r2;", out, x, block=96)
    assert_array_equal(out, np.repeat(x.reshape(3, 32).sum(1), 32))
    assert counts.of(index_of(counts, "shfl.sync.bfly.b32")).issues == 3


def test_groups_of_lanes_with_masks_of_their_own_shuffle_apart() -> None:
    out = np.zeros(32, np.uint32)
    body = """and.b32 %r1, %r0, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;
    shfl.sync.idx.b32 %r3, %r0, 0, 0x181f, %r2; st.global.u32 [%q0], %r3;"""
    launched(body, out)
    assert_array_equal(out, np.repeat([0, 8, 16, 24], 8))


def test_a_shuffle_waits_for_the_lanes_that_it_names() -> None:
    # lanes 0-7 come by a shorter way to a lower address; they wait for the others
    body = """setp.lt.u32 %p1, %r0, 8; @%p1 bra MEET; mov.u32 %r9, 1; mov.u32 %r9, 2;
    MEET: shfl.sync.idx.b32 %r1, %r0, 31, 31, -1; st.global.u32 [%q0], %r1;"""
    out = np.zeros(32, np.uint32)
    counts = launched(body, out)
    assert_array_equal(out, np.full(32, 31))
    assert counts.of(index_of(counts, "shfl.sync.idx.b32")).issues == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0x7fffffff;", r"lane 31 is not in its own mask 0x7fffffff"),
        ("setp.lt.u32 %p1, %r0, 8; @%p1 shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; bar.sync 0;", "deadlock: threads wait"),
        ("setp.lt.u32 %p1, %r0, 8; @%p1 shfl.sync.idx.b32 %r1, %r0, 9, 31, 0xff;", "reads lane 9, which takes no part"),
        ("setp.ge.u32 %p1, %r0, 8; @%p1 ret; shfl.sync.down.b32 %r1, %r0, 4, 31, -1;", "thread .4, 0, 0.: .* lane 8"),
    ],
    ids=["own-mask", "never-come", "outside-mask", "left"],
)  # fmt: skip
def test_shuffles_that_are_undefined_are_seen(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        launched(body, np.zeros(32, F32))


def test_waits_of_lanes_that_left_are_fulfilled() -> None:
    out = np.zeros(32, np.uint32)
    launched(
        "setp.ge.u32 %p1, %r0, 8; @%p1 ret; shfl.sync.bfly.b32 %r1, %r0, 7, 31, -1; st.global.u32 [%q0], %r1;", out
    )
    assert_array_equal(out[:8], np.arange(8) ^ 7)


# --- votes, matches, reductions


def test_votes() -> None:
    p = np.zeros(64, bool)
    p[[0, 5, 31]] = True
    p[32:] = True
    assert_array_equal(
        compute("vote.sync.ballot.b32 %x, %a, -1;", p, out=np.uint32), [0x80000021] * 32 + [0xFFFFFFFF] * 32
    )
    assert_array_equal(compute("vote.sync.any.pred %x, !%a, -1;", p, out=bool), [True] * 32 + [False] * 32)
    assert_array_equal(compute("vote.sync.all.pred %x, %a, -1;", p, out=bool), [False] * 32 + [True] * 32)
    assert_array_equal(compute("vote.sync.uni.pred %x, %a, -1;", p, out=bool), [False] * 32 + [True] * 32)


def test_lanes_with_equal_values_find_one_another() -> None:
    values = (np.arange(32) % 3).astype(np.uint32)
    groups = [sum(1 << lane for lane in range(k, 32, 3)) for k in range(3)]
    assert_array_equal(compute("match.any.sync.b32 %x, %a, -1;", values), [groups[k] for k in values])


@pytest.mark.parametrize(("name", "function"), [("add", np.sum), ("min", np.min), ("max", np.max)])
def test_a_warp_reduces(name: str, function: Any) -> None:
    values = np.random.default_rng(5).integers(-999, 999, 64).astype(np.int32)
    expected = np.repeat([function(values[:32]), function(values[32:])], 32)
    assert_array_equal(compute(f"redux.sync.{name}.s32 %x, %a, -1;", values), expected)


def test_lane_masks() -> None:
    lane = np.zeros(32, np.uint32)
    for name, value in (("eq", [1 << i for i in range(32)]), ("lt", [(1 << i) - 1 for i in range(32)])):
        assert_array_equal(compute(f"mov.u32 %x, %lanemask_{name};", lane), value)
    above = [2**32 - (2 << i) for i in range(32)]
    assert_array_equal(compute("mov.u32 %x, %lanemask_gt;", lane), above)


# --- atomic operations


def test_every_lane_gets_a_slot_of_its_own() -> None:
    slots, counter = np.zeros(96, np.uint32), np.zeros(1, np.uint32)
    body = "ld.param.u64 %q9, [p1]; atom.global.add.u32 %r1, [%q9], 2; st.global.u32 [%q0], %r1;"
    launched(body, slots, counter, block=96)
    assert_array_equal(np.sort(slots), np.arange(0, 192, 2))
    assert counter[0] == 192


def test_atomic_sums_of_floats_are_made_one_after_the_other() -> None:
    x = np.random.default_rng(2).standard_normal(64).astype(F32)
    total = np.zeros(1, F32)
    launched("ld.param.u64 %q9, [p1]; ld.global.f32 %f1, [%q0]; red.global.add.f32 [%q9], %f1;", x, total, block=64)
    expected = F32(0)
    for value in x:
        expected += value
    assert total[0] == expected


@pytest.mark.parametrize(
    ("name", "kind", "start", "expected"),
    [("max", "s32", -5, 31), ("min", "s32", 7, 0), ("or", "b32", 32, 63), ("xor", "b32", 0, 0), ("and", "b32", 1, 0),
     ("exch", "b32", 9, 31), ("inc", "u32", 0, None)],
)  # fmt: skip
def test_atomic_updates(name: str, kind: str, start: int, expected: int | None) -> None:
    place = np.array([start], np.int32)
    launched(f"ld.param.u64 %q9, [p0]; atom.global.{name}.{kind} %r1, [%q9], %r0;", place)
    if expected is None:  # inc: 0 if old >= lane else old + 1, in order of lane
        expected = start
        for lane in range(32):
            expected = 0 if expected >= lane else expected + 1
    assert place[0] == expected


def test_compare_and_swap_lets_one_lane_win() -> None:
    won, lock = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    body = "ld.param.u64 %q9, [p1]; atom.global.cas.b32 %r1, [%q9], 0, 1; st.global.u32 [%q0], %r1;"
    launched(body, won, lock, block=64)
    assert_array_equal(won, [0] + [1] * 63)


def test_atomics_in_shared_memory_need_a_first_value() -> None:
    body = ".shared .align 4 .b8 s[4]; mov.u64 %q9, s; st.shared.u32 [%q9], 0; bar.sync 0;"
    out = np.zeros(64, np.uint32)
    update = "atom.shared.add.u32 %r1, [%q9], 1; st.global.u32 [%q0], %r1;"
    launched(body + update, out, block=64)
    assert_array_equal(np.sort(out), np.arange(64))
    with pytest.raises(PtxError, match="shared memory read before anything was written"):
        launched(".shared .align 4 .b8 s[4]; mov.u64 %q9, s;" + update, out, block=64)
