"""Counts that are worked out by hand: sectors, ideal sectors, passes through the banks, lines of the source."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.gpu.nvrtc import compile_source
from labkit.gpu.ptx.counts import Tally
from labkit.gpu.ptx.parse import Line, parse
from labkit.gpu.ptx.runner import run
from tests.kernels.ptx.programs import launched

F32 = np.float32


@pytest.mark.parametrize(
    ("stride", "sectors"),
    [(0, 1), (1, 4), (2, 8), (4, 16), (8, 32), (9, 32)],
)
def test_sectors_of_32_floats_by_stride(stride: int, sectors: int) -> None:
    # 32 lanes * 4 bytes * stride / 32 bytes a sector, at most one a lane; one for a broadcast
    body = f"ld.param.u64 %q8, [p0]; mad.wide.u32 %q9, %r0, {4 * stride}, %q8; ld.global.f32 %f1, [%q9];"
    total = launched(body, np.ones(32 * 10, F32)).total
    assert (total.requests, total.request_lanes, total.sectors) == (1, 32, sectors)
    assert total.ideal_sectors == (1 if stride == 0 else 4)


def test_a_warp_that_begins_between_sectors_touches_one_more() -> None:
    total = launched("ld.global.f32 %f1, [%q0+4];", np.ones(33, F32)).total
    assert (total.sectors, total.ideal_sectors) == (5, 4)


def test_vectors_of_four_fill_sixteen_sectors() -> None:
    body = "mad.wide.u32 %q9, %r0, 12, %q0; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%q9];"
    total = launched(body, np.ones(128, F32)).total
    assert (total.requests, total.sectors, total.ideal_sectors) == (1, 16, 16)


def test_lanes_that_take_no_part_touch_nothing() -> None:
    body = "setp.lt.u32 %p1, %r0, 8; @%p1 ld.global.f32 %f1, [%q0];"
    total = launched(body, np.ones(64, F32), block=64).total
    # the second warp issues the load and asks for nothing
    assert (total.requests, total.request_lanes, total.sectors, total.ideal_sectors) == (1, 8, 1, 1)


def test_bytes_of_one_sector_are_counted_once() -> None:
    total = launched("ld.global.u8 %r1, [%q0];", np.ones(32, np.uint8)).total
    assert (total.sectors, total.ideal_sectors) == (1, 1)


SHARED = ".shared .align 16 .b8 s[8192]; mov.u64 %q10, s;"


@pytest.mark.parametrize(("stride", "passes"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (16, 16), (32, 32), (33, 1)])
def test_passes_through_the_banks_by_stride(stride: int, passes: int) -> None:
    # 32 banks of 4 bytes: gcd(stride, 32) lanes meet in a bank; equal words are one trip
    total = launched(
        f"{SHARED} mad.wide.u32 %q11, %r0, {4 * stride}, %q10; st.shared.f32 [%q11], 0f00000000;", np.ones(32, F32)
    ).total
    assert (total.shared_requests, total.bank_passes, total.ideal_passes) == (1, passes, 1)


@pytest.mark.parametrize(
    ("size", "line"), [(8, "v2.f32 [%q11], {%f1, %f1}"), (16, "v4.f32 [%q11], {%f1, %f1, %f1, %f1}")]
)
def test_wide_accesses_go_through_in_parts(size: int, line: str) -> None:
    body = f"{SHARED} mov.f32 %f1, 0f00000000; mad.wide.u32 %q11, %r0, {size}, %q10; st.shared.{line};"
    total = launched(body, np.ones(32, F32)).total
    assert (total.bank_passes, total.ideal_passes) == (size // 4, size // 4)


def test_half_a_warp_of_wide_accesses_needs_half_the_passes() -> None:
    store = "@%p1 st.shared.v4.f32 [%q11], {%f1, %f1, %f1, %f1};"
    body = f"{SHARED} setp.lt.u32 %p1, %r0, 8; mov.f32 %f1, 0f00000000; mad.wide.u32 %q11, %r0, 16, %q10; {store}"
    assert launched(body, np.ones(32, F32)).total.bank_passes == 1


def test_tallies_add_up() -> None:
    assert Tally(issues=1, sectors=4) + Tally(issues=2, bank_passes=3) == Tally(issues=3, sectors=4, bank_passes=3)


# --- from CUDA C

COPY = """extern "C" __global__ void copy(float* __restrict__ out, const float* __restrict__ in, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i * stride];
  out[i] = x;
}
"""


def test_counts_are_told_by_source_line() -> None:
    program = parse(compile_source(COPY, "copy.cu").ptx)["copy"]
    out, x = np.zeros(256, F32), np.arange(256 * 8, dtype=F32)
    counts = run(program, (2,), (128,), [out, x, np.int32(8)])
    np.testing.assert_array_equal(out, x[::8])
    lines = counts.by_line()
    assert list(lines) == sorted(lines, key=lambda line: line.number)
    load, store = lines[Line("copy.cu", 3)], lines[Line("copy.cu", 4)]
    assert (load.requests, load.sectors, load.ideal_sectors) == (8, 8 * 32, 8 * 4)
    assert (store.requests, store.sectors, store.ideal_sectors) == (8, 8 * 4, 8 * 4)
    assert sum(lines.values(), Tally()) == counts.total
    assert counts.total.lanes == 32 * counts.total.issues
