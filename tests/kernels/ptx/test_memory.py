"""Loads and stores, and the faults that a GPU would answer with a crash or with garbage."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from labkit.errors import KernelArgumentError, KernelLaunchError, PtxError, PtxUnsupportedError
from labkit.gpu.ptx.parse import parse
from labkit.gpu.ptx.runner import run
from tests.kernels.ptx.programs import kernel, launched, params

F32 = np.float32


def test_vectors_go_in_and_out_lowest_first() -> None:
    x = np.arange(128, dtype=F32)
    out = np.zeros(128, F32)
    body = """mad.wide.u32 %q10, %r0, 12, %q1;  mad.wide.u32 %q11, %r0, 12, %q0;
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%q10];
    st.global.v2.f32 [%q11], {%f2, %f1}; st.global.v2.f32 [%q11+8], {%f4, %f3};"""
    launched(body, out, x)  # element addresses are 4 bytes a thread; 12 more make 16
    assert_array_equal(out.reshape(-1, 2), x.reshape(-1, 2)[:, ::-1])


def test_small_types_are_extended_by_their_sign() -> None:
    x = np.full(32, 0x80, np.uint8)
    signed, unsigned = np.zeros(32, np.int32), np.zeros(32, np.int32)
    launched(
        "ld.global.s8 %r1, [%q2]; st.global.u32 [%q0], %r1; ld.global.u8 %r2, [%q2]; st.global.u32 [%q1], %r2;",
        signed,
        unsigned,
        x,
    )
    assert_array_equal(signed, np.full(32, -128))
    assert_array_equal(unsigned, np.full(32, 128))


def test_a_store_takes_the_low_bits() -> None:
    out = np.zeros(32, np.uint8)
    launched("mov.u32 %r1, 0x1234; st.global.u8 [%q0], %r1;", out)
    assert_array_equal(out, np.full(32, 0x34))


def test_scalars_and_structs_are_parameters() -> None:
    out = np.zeros(32, np.int32)
    body = """ld.param.u64 %q0, [p0]; ld.param.u32 %r1, [p1]; ld.param.u32 %r2, [p2+4];
    add.s32 %r3, %r1, %r2; st.global.u32 [%q0], %r3;"""
    program = kernel(body, ".param .u64 p0, .param .u32 p1, .param .align 4 .b8 p2[8]")
    run(program, (1,), (1,), [out, np.int32(5), np.array([1, 30], np.int32).tobytes()])
    assert out[0] == 35


def fault(body: str, *args: Any, **keywords: Any) -> str:
    """The message of what goes wrong, after a look at the arrays: they must be as they were."""
    before = [np.array(a) for a in args]
    with pytest.raises(PtxError) as caught:
        launched(body, *args, **keywords)
    for a, b in zip(args, before, strict=True):
        assert_array_equal(a, b)
    return str(caught.value)


def test_one_element_too_far_is_seen_with_thread_and_place() -> None:
    message = fault("ld.global.f32 %f1, [%q0]; st.global.f32 [%q1+4], %f1;", np.ones(32, F32), np.ones(32, F32))
    assert message == (
        "f, (no source line), block (0, 0, 0) thread (31, 0, 0): global access of 4 bytes out of bounds: "
        "byte 128 of argument 1, which has 128 (`st.global.f32 [%q1+4], %f1`)"
    )


def test_one_element_too_early_is_seen() -> None:
    assert "byte -4 of argument 0" in fault("ld.global.f32 %f1, [%q0+-4];", np.ones(32, F32))


def test_an_access_that_is_half_outside_is_seen() -> None:
    assert "out of bounds" in fault("ld.global.f32 %f1, [%q0];", np.ones(31, F32), block=32)
    # 30 bytes: a 4-byte access at 28 begins inside
    assert "byte 28 of argument 0, which has 30" in fault(
        "and.b64 %q1, %q0, -4; ld.global.u32 %r1, [%q1];", np.ones(30, np.uint8), block=30
    )


def test_a_null_pointer_is_seen() -> None:
    program = kernel("ld.param.u64 %q0, [p0]; ld.global.f32 %f1, [%q0];", params("u64", "u64"))
    with pytest.raises(PtxError, match="out of bounds"):
        run(program, (1,), (32,), [None, np.ones(4, F32)])
    with pytest.raises(PtxError, match="no array was passed"):
        run(kernel("ld.param.u64 %q0, [p0]; ld.global.f32 %f1, [%q0];", params("u64")), (1,), (1,), [None])


def test_an_address_of_nothing_is_seen() -> None:
    assert "address 0xdeadbeef000, in no argument" in fault(
        "mov.u64 %q1, 0xdeadbeef000; ld.global.f32 %f1, [%q1];", np.ones(32, F32)
    )


@pytest.mark.parametrize(("line", "size"), [("ld.global.v4.f32 {%f1, %f2, %f3, %f4}", 16), ("ld.global.u64 %q9", 8)])
def test_misaligned_accesses_are_seen(line: str, size: int) -> None:
    message = fault(f"{line}, [%q0+4];", np.ones(64, F32), block=1)
    assert f"misaligned global access of {size} bytes at an address that is 4 bytes off" in message


def test_a_store_into_a_read_only_array_is_seen() -> None:
    x = np.ones(32, F32)
    x.flags.writeable = False
    assert "store into the read-only argument 0" in fault("st.global.f32 [%q0], 0f00000000;", x)


NEVER = "comes from a register that was never written"


@pytest.mark.parametrize(
    "body",
    [
        "st.global.f32 [%q0], %f7;",
        "add.f32 %f1, %f7, %f7; mov.f32 %f2, %f1; st.global.f32 [%q0], %f2;",
        "ld.global.f32 %f1, [%q7];",
        "@%p7 mov.f32 %f1, 0f00000000;",
        "bra L; L: @!%p7 bra L;",
        "vote.sync.any.pred %p1, %p7, -1;",
        "shfl.sync.down.b32 %r1, %r7, 1, 31, -1; st.global.u32 [%q0], %r1;",
        "red.global.add.f32 [%q0], %f7;",
        "setp.lt.u32 %p1, %r0, 40; selp.f32 %f1, %f7, 0f00000000, %p1; st.global.f32 [%q0], %f1;",
        "setp.lt.u32 %p1, %r0, 40; and.pred %p2, %p1, %p7; @%p2 st.global.f32 [%q0], 0f00000000;",
    ],
    ids=["store", "through", "address", "guard", "branch", "vote", "shuffle", "atomic", "chosen", "undecided"],
)
def test_what_was_never_written_is_seen_where_it_is_used(body: str) -> None:
    assert NEVER in fault(body, np.ones(32, F32))


def test_what_only_some_lanes_wrote_is_seen_in_the_others() -> None:
    body = "setp.lt.u32 %p1, %r0, 5; @%p1 mov.f32 %f7, 0f00000000; st.global.f32 [%q0], %f7;"
    assert "thread (5, 0, 0): what is used here comes from a register" in fault(body, np.ones(32, F32))
    # lane 7 hands lane 3 what lane 3 has not written; lanes 0-3 hold what 4-7 wrote
    body = "setp.ge.u32 %p1, %r0, 4; @%p1 mov.u32 %r7, %r0; shfl.sync.down.b32 %r1, %r7, 4, 31, -1;"
    launched(body + "st.global.u32 [%q0], %r1;", np.ones(32, np.uint32))


def test_what_was_never_written_may_be_read_if_nothing_comes_of_it() -> None:
    # NVRTC hoists comparisons above the branch that makes them meaningless
    out = np.zeros(32, F32)
    body = """setp.lt.u32 %p1, %r0, 40; setp.lt.s32 %p2, %r7, 3; not.pred %p3, %p1; and.pred %p4, %p3, %p2;
    or.pred %p5, %p2, %p1; and.pred %p6, %p2, %p3; selp.f32 %f1, 0f3F800000, %f7, %p5;
    @%p4 mov.f32 %f1, 0f00000000; @%p6 mov.f32 %f1, 0f00000000; st.global.f32 [%q0], %f1;"""
    launched(body, out)
    assert_array_equal(out, np.ones(32))


SHARED = ".shared .align 4 .b8 s[128]; mov.u64 %q10, s; mad.wide.u32 %q11, %r0, 4, %q10;"


def test_shared_memory_belongs_to_its_block() -> None:
    out = np.zeros(4 * 32, F32)
    body = (
        SHARED
        + """
    mov.u32 %r1, %ctaid.x; cvt.rn.f32.u32 %f1, %r1; st.shared.f32 [%q11], %f1; bar.sync 0;
    ld.shared.f32 %f2, [%q11]; mul.wide.u32 %q12, %r1, 128; add.s64 %q13, %q0, %q12; st.global.f32 [%q13], %f2;"""
    )
    launched(body, out, grid=4)
    assert_array_equal(out, np.repeat(np.arange(4), 32))


def test_shared_memory_that_nobody_wrote_is_seen() -> None:
    assert "thread (3, 0, 0): shared memory read before anything was written: byte 12 of the block" in fault(
        SHARED
        + "setp.lt.u32 %p1, %r0, 3; @%p1 st.shared.f32 [%q11], 0f00000000; bar.sync 0; ld.shared.f32 %f1, [%q11];",
        np.ones(32, F32),
    )


def test_shared_memory_out_of_bounds_is_seen() -> None:
    message = fault(SHARED + "st.shared.f32 [%q11+4], 0f00000000;", np.ones(32, F32))
    assert "thread (31, 0, 0): shared access of 4 bytes out of bounds: byte 128 of 128 of the block" in message


def test_dynamic_shared_memory_is_as_large_as_the_launch_says() -> None:
    body = "mov.u64 %q11, 60; st.shared.u32 [%q11], %r0;"
    launched(body, np.ones(32, F32), shared_bytes=64)
    assert "byte 60 of 60" in fault(body, np.ones(32, F32), shared_bytes=60)


def test_local_memory_belongs_to_its_thread_and_generic_addresses_find_their_space() -> None:
    out = np.zeros(64, F32)
    body = (
        SHARED
        + """
    .local .align 16 .b8 depot[16]; mov.u64 %q14, depot; cvta.local.u64 %q15, %q14; cvta.shared.u64 %q16, %q11;
    cvt.rn.f32.u32 %f1, %r0; st.local.f32 [%q14+4], %f1; ld.f32 %f2, [%q15+4]; st.f32 [%q16], %f2;
    cvta.to.shared.u64 %q17, %q16; ld.shared.f32 %f3, [%q17]; st.f32 [%q0], %f3; """
    )
    launched(body, out[:32].copy())
    counts_of = np.zeros(32, F32)
    launched(body, counts_of)
    assert_array_equal(counts_of, np.arange(32))
    assert "local access of 4 bytes out of bounds: byte 16 of 16" in fault(
        ".local .align 16 .b8 d[16]; mov.u64 %q14, d; ld.local.f32 %f2, [%q14+16];", counts_of
    )


# --- arguments


def test_arguments_that_do_not_fit_are_refused() -> None:
    program = kernel("", params("u64", "u32", "f32"))
    good = [np.ones(4, F32), np.int32(1), F32(1)]
    run(program, (1,), (1,), good)
    for i, bad, message in (
        (0, np.ones((4, 4), F32)[:, ::2], "argument 0 must be contiguous"),
        (1, 1, "argument 1 must be an array, a NumPy scalar, bytes or None, got int"),
        (1, np.int64(1), "argument 1 has 8 bytes, the kernel expects 4"),
        (1, F32(1), r"argument 1 is a \.u32 of the kernel, got float32"),
        (2, np.int32(1), r"argument 2 is a \.f32 of the kernel, got int32"),
    ):
        args: list[object] = [*good]
        args[i] = bad
        with pytest.raises(KernelArgumentError, match=message):
            run(program, (1,), (1,), args)
    with pytest.raises(KernelArgumentError, match="takes 3 arguments, got 2"):
        run(program, (1,), (1,), good[:2])


def test_one_array_may_be_passed_twice_but_overlaps_may_not() -> None:
    x = np.zeros(64, F32)
    program = kernel(
        "ld.param.u64 %q0, [p0]; ld.param.u64 %q1, [p1]; st.global.f32 [%q0], 0f3F800000; ld.global.f32 %f1, [%q1];"
        "st.global.f32 [%q1+4], %f1;",
        params("u64", "u64"),
    )
    run(program, (1,), (1,), [x, x])
    assert_array_equal(x[:2], [1, 1])
    with pytest.raises(KernelArgumentError, match="argument 1 overlaps another one"):
        run(program, (1,), (1,), [x, x[32:]])


def test_launches_that_no_device_would_take_are_refused() -> None:
    for grid, block, message in (((0,), (32,), "grid"), ((1,), (0,), "block"), ((1,), (1025,), "at most 1024 threads")):
        with pytest.raises(KernelLaunchError, match=re.escape(message)):
            run(kernel(""), grid, block, [])


# --- variables of the module

VARIABLES = """.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 40;
.visible .global .align 8 .b8 table[24] = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3};
.visible .entry f(.param .u64 p0) {
.reg .b32 %r<4>; .reg .b64 %q<8>;
ld.param.u64 %q0, [p0]; mov.u64 %q1, counter; atom.global.add.u32 %r1, [%q1], 1;
cvta.global.u64 %q2, table; ld.u64 %q3, [%q2+16]; ld.global.u64 %q4, [table+BEYOND];
cvt.u64.u32 %q5, %r1; add.u64 %q6, %q5, %q3; add.u64 %q6, %q6, %q4;
st.global.u64 [%q0], %q6; st.global.u64 [table+8], %q6; ret; }"""


def test_variables_of_the_module_keep_what_a_launch_left() -> None:
    program, out = parse(VARIABLES.replace("BEYOND", "8"))["f"], np.zeros(1, np.uint64)
    run(program, (1,), (1,), [out])
    assert out[0] == 40 + 3 + 2
    run(program, (1,), (1,), [out])
    assert out[0] == 41 + 3 + 45


def test_a_variable_has_bounds() -> None:
    with pytest.raises(PtxError, match="out of bounds: byte 24 of table, which has 24"):
        run(parse(VARIABLES.replace("BEYOND", "24"))["f"], (1,), (1,), [np.zeros(1, np.uint64)])


def test_a_variable_that_starts_with_an_address_is_not_known() -> None:
    with pytest.raises(PtxUnsupportedError, match="variable pointer starts with 'counter'"):
        parse(VARIABLES.replace(".visible .entry", ".global .u64 pointer = counter;\n.visible .entry"))


def test_what_is_not_known_is_said_to_be_so() -> None:
    with pytest.raises(PtxUnsupportedError, match=r"ld\.const\.u32"):
        launched("ld.const.u32 %r1, [%q0];", np.zeros(32, np.uint32))
