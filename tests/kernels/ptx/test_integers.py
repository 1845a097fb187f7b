"""Integer and bit instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from labkit.errors import PtxError
from tests.kernels.ptx.programs import compute

Array = NDArray[Any]
EDGES = {
    np.int32: [0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 123456789, -987654321],
    np.uint32: [0, 1, 7, 2**31, 2**32 - 1, 0xDEADBEEF, 123456789],
    np.int64: [0, 1, -1, 7, 2**63 - 1, -(2**63), 2**40 + 12345, -(2**40) - 999],
    np.uint64: [0, 1, 7, 2**63, 2**64 - 1, 0xDEADBEEFCAFEBABE],
}
NAMES = {np.int32: "s32", np.uint32: "u32", np.int64: "s64", np.uint64: "u64"}


def pairs(dtype: Any) -> tuple[Array, Array]:
    a, b = np.meshgrid(np.array(EDGES[dtype], dtype), np.array(EDGES[dtype], dtype))
    return a.ravel(), b.ravel()


def expected(dtype: Any, function: Callable[..., int], *inputs: Array) -> Array:
    """Python's exact integers, brought into the type."""
    bits = np.dtype(dtype).itemsize * 8
    values = [function(*row) & (1 << bits) - 1 for row in zip(*(i.tolist() for i in inputs), strict=True)]
    return np.array(values, f"u{bits // 8}").view(dtype)


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("dtype", EDGES, ids=NAMES.get)
def test_sums_products_and_extremes_wrap(dtype: Any) -> None:
    a, b = pairs(dtype)
    name = NAMES[dtype]
    bits = np.dtype(dtype).itemsize * 8
    for line, function in (
        (f"add.{name}", lambda x, y: x + y),
        (f"sub.{name}", lambda x, y: x - y),
        (f"mul.lo.{name}", lambda x, y: x * y),
        (f"mul.hi.{name}", lambda x, y: x * y >> bits),
        (f"min.{name}", min),
        (f"max.{name}", max),
    ):
        assert_array_equal(compute(f"{line} %x, %a, %b;", a, b), expected(dtype, function, a, b), err_msg=line)
    got = compute(f"mad.lo.{name} %x, %a, %b, %c;", a, b, a)
    assert_array_equal(got, expected(dtype, lambda x, y: x * y + x, a, b))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32], ids=NAMES.get)
def test_wide_products_keep_all_bits(dtype: Any) -> None:
    a, b = pairs(dtype)
    wide = np.int64 if dtype is np.int32 else np.uint64
    got = compute(f"mul.wide.{NAMES[dtype]} %x, %a, %b;", a, b, out=wide)
    assert_array_equal(got, expected(wide, lambda x, y: x * y, a, b))
    got = compute(f"mad.wide.{NAMES[dtype]} %x, %a, %b, %c;", a, b, np.full(a.shape, 5, wide), out=wide)
    assert_array_equal(got, expected(wide, lambda x, y: x * y + 5, a, b))


@pytest.mark.parametrize("dtype", EDGES, ids=NAMES.get)
def test_division_goes_towards_zero(dtype: Any) -> None:
    a, b = (v[pairs(dtype)[1] != 0] for v in pairs(dtype))
    name = NAMES[dtype]
    assert_array_equal(compute(f"div.{name} %x, %a, %b;", a, b), expected(dtype, toward_zero, a, b))
    remainder = expected(dtype, lambda x, y: x - toward_zero(x, y) * y, a, b)
    assert_array_equal(compute(f"rem.{name} %x, %a, %b;", a, b), remainder)


def test_division_by_zero_is_an_error_that_names_the_thread() -> None:
    with pytest.raises(PtxError, match=r"thread \(2, 0, 0\): integer division by zero"):
        compute("div.s32 %x, %a, %b;", np.array([4, 5, 6, 7], np.int32), np.array([1, 2, 0, 0], np.int32))


@pytest.mark.parametrize("dtype", EDGES, ids=NAMES.get)
def test_shifts_clamp_their_amount(dtype: Any) -> None:
    bits = np.dtype(dtype).itemsize * 8
    amounts = np.array([0, 1, 7, bits - 1, bits, bits + 1, 255], np.uint32)
    a, by = (v.ravel() for v in np.meshgrid(np.array(EDGES[dtype], dtype), amounts))
    left = expected(dtype, lambda x, n: x << n if n < bits else 0, a, by)
    assert_array_equal(compute(f"shl.b{bits} %x, %a, %b;", a, by), left)
    # Python's >> of a negative integer brings in the sign, as .s types do
    assert_array_equal(compute(f"shr.{NAMES[dtype]} %x, %a, %b;", a, by), expected(dtype, lambda x, n: x >> n, a, by))


def test_logic() -> None:
    a, b = pairs(np.uint32)
    for name, function in (("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__)):
        assert_array_equal(compute(f"{name}.b32 %x, %a, %b;", a, b), expected(np.uint32, function, a, b))
    assert_array_equal(compute("not.b32 %x, %a;", a), expected(np.uint32, lambda x: ~x, a))
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert_array_equal(compute("and.pred %x, %a, %b;", p, q), p & q)
    assert_array_equal(compute("xor.pred %x, %a, %b;", p, q), p ^ q)
    assert_array_equal(compute("not.pred %x, %a;", p), ~p)


def test_any_function_of_three_bits() -> None:
    rng = np.random.default_rng(3)
    a, b, c = rng.integers(0, 2**32, (3, 50), dtype=np.uint32)
    # 0xF0, 0xCC, 0xAA are the truth tables of a, b and c themselves
    for table, value in ((0x96, a ^ b ^ c), (0xEA, (a & b) | c), (0xD8, (a & ~c) | (b & c)), (0xF0, a), (0, a & 0)):
        program = f".reg .b32 %t; mov.u32 %t, %c; lop3.b32 %x, %a, %b, %t, {table};"
        assert_array_equal(compute(program, a, b, c), value, err_msg=hex(table))


def test_bytes_are_permuted() -> None:
    a, b = np.array([0x33221180], np.uint32), np.array([0x77665544], np.uint32)
    for selector, value in ((0x3210, 0x33221180), (0x7654, 0x77665544), (0x0123, 0x80112233), (0x888F, 0xFFFFFF00)):
        assert_array_equal(compute(f"prmt.b32 %x, %a, %b, {selector};", a, b), [value], err_msg=hex(selector))


def test_funnel_shifts() -> None:
    low, top = np.array([0x89ABCDEF], np.uint32), np.array([0x01234567], np.uint32)
    assert_array_equal(compute("shf.l.wrap.b32 %x, %a, %b, 36;", low, top), [0x12345678])
    assert_array_equal(compute("shf.r.wrap.b32 %x, %a, %b, 4;", low, top), [0x789ABCDE])
    assert_array_equal(compute("shf.l.clamp.b32 %x, %a, %b, 40;", low, top), [0x89ABCDEF])
    assert_array_equal(compute("shf.r.clamp.b32 %x, %a, %b, 40;", low, top), [0x01234567])


def bit_field(x: int, start: int, size: int, bits: int, signed: bool) -> int:
    """PTX ISA, "bfe", by the letter: the sign is the last bit of the field, or the highest bit beyond the end."""
    x &= (1 << bits) - 1
    sign = (x >> min(start + size - 1, bits - 1)) & 1 if signed and size else 0
    return sum(((x >> (start + i)) & 1 if i < size and start + i < bits else sign) << i for i in range(bits))


@pytest.mark.parametrize("dtype", EDGES, ids=NAMES.get)
@pytest.mark.parametrize(("start", "size"), [(0, 8), (4, 5), (28, 8), (31, 1), (3, 0), (0, 64), (40, 3), (63, 2)])
def test_bit_fields_are_extracted(dtype: Any, start: int, size: int) -> None:
    a = np.array(EDGES[dtype], dtype)
    bits = np.dtype(dtype).itemsize * 8
    value = expected(dtype, lambda x: bit_field(x, start, size, bits, dtype in (np.int32, np.int64)), a)
    assert_array_equal(compute(f"bfe.{NAMES[dtype]} %x, %a, {start}, {size};", a), value)


@pytest.mark.parametrize(("start", "size"), [(0, 8), (4, 5), (28, 8), (3, 0), (0, 32), (40, 3)])
def test_bit_fields_are_inserted(start: int, size: int) -> None:
    a, b = pairs(np.uint32)

    def insert(source: int, into: int) -> int:
        mask = ((1 << size) - 1) << start & 0xFFFFFFFF
        return (into & ~mask) | (source << start & mask)

    assert_array_equal(compute(f"bfi.b32 %x, %a, %b, {start}, {size};", a, b), expected(np.uint32, insert, a, b))


def test_bits_are_counted_and_reversed() -> None:
    for dtype, bits in ((np.uint32, 32), (np.uint64, 64)):
        a = np.array(EDGES[dtype], dtype)
        assert_array_equal(compute(f"popc.b{bits} %x, %a;", a, out=np.uint32), [int(v).bit_count() for v in a])
        assert_array_equal(compute(f"clz.b{bits} %x, %a;", a, out=np.uint32), [bits - int(v).bit_length() for v in a])
        assert_array_equal(compute(f"brev.b{bits} %x, %a;", a), [int(f"{int(v):0{bits}b}"[::-1], 2) for v in a])


@pytest.mark.parametrize("comparison", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", EDGES, ids=NAMES.get)
def test_comparisons_heed_the_sign(dtype: Any, comparison: str) -> None:
    a, b = pairs(dtype)
    function = getattr(int, f"__{comparison}__")
    value = [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert_array_equal(compute(f"setp.{comparison}.{NAMES[dtype]} %x, %a, %b;", a, b, out=bool), value)


def test_a_comparison_has_an_opposite_and_takes_a_third() -> None:
    a, b = np.array([1, 2, 3, 4], np.int32), np.array([2, 2, 2, 5], np.int32)
    c = np.array([1, 1, 0, 0], bool)
    assert_array_equal(compute("setp.lt.s32 %p1|%x, %a, %b;", a, b, out=bool), a >= b)
    assert_array_equal(compute("setp.lt.and.s32 %x, %a, %b, %c;", a, b, c, out=bool), (a < b) & c)
    assert_array_equal(compute("setp.lt.or.s32 %p1|%x, %a, %b, !%c;", a, b, c, out=bool), (a >= b) | ~c)


def test_selection_and_negation() -> None:
    a, b, p = np.array([1, 2], np.int32), np.array([-1, -2], np.int32), np.array([1, 0], bool)
    assert_array_equal(compute("selp.b32 %x, %a, %b, %c;", a, b, p), [1, -2])
    assert_array_equal(compute("neg.s32 %x, %a;", np.array([5, -(2**31)], np.int32)), [-5, -(2**31)])
    assert_array_equal(compute("abs.s32 %x, %a;", np.array([-5, 5], np.int32)), [5, 5])


def test_integers_change_their_width() -> None:
    a = np.array([-1, 255, 256, -32769], np.int32)
    assert_array_equal(compute("cvt.s64.s32 %x, %a;", a, out=np.int64), a)
    assert_array_equal(compute("cvt.u64.u32 %x, %a;", a, out=np.uint64), a.astype(np.uint32))
    assert_array_equal(compute("cvt.u16.u32 %x, %a;", a, out=np.uint16), a.astype(np.uint16))
    assert_array_equal(compute("cvt.s32.s8 %x, %a;", a), a.astype(np.int8))
    assert_array_equal(compute("cvt.u32.u8 %x, %a;", a), a.astype(np.uint8))
    assert_array_equal(compute("cvt.sat.u16.s32 %x, %a;", a, out=np.uint16), [0, 255, 256, 0])


def test_registers_are_packed_and_taken_apart_lowest_first() -> None:
    a, b = np.array([1, 2], np.uint32), np.array([3, 4], np.uint32)
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    assert_array_equal(compute("mov.b64 %x, {%a, %b};", a, b, out=np.uint64), both)
    assert_array_equal(compute("mov.b64 {%r9, %x}, %a;", both, out=np.uint32), b)
    assert_array_equal(compute("mov.b64 {%x, _}, %a;", both, out=np.uint32), a)
    assert_array_equal(compute("mov.b32 %x, {0, %a};", np.array([0x3F80], np.uint16), out=np.float32), [1.0])
    assert_array_equal(compute("mov.b64 {%x, %r9}, 4294967298;", a), [2, 2])


def test_numbers_are_read_in_every_notation() -> None:
    one = np.zeros(1, np.uint32)
    for text, value in (("0x1F", 31), ("-1", 2**32 - 1), ("017", 15), ("0b101", 5), ("42U", 42), ("WARP_SZ", 32)):
        assert_array_equal(compute(f"add.u32 %x, %a, {text};", one), [value], err_msg=text)
    assert_array_equal(compute("add.f32 %x, %a, 0fBFC00000;", np.zeros(1, np.float32)), [-1.5])
    assert_array_equal(compute("add.f64 %x, %a, 0d4004000000000000;", np.zeros(1)), [2.5])
