"""Float instructions against NumPy and against exact fractions: rounding, flushing, NaN, signed zeros, conversions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from labkit.errors import PtxError
from tests.kernels.ptx.programs import compute

Array = NDArray[Any]
F32 = np.float32
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, -3.4e38, 1.1754944e-38, 2**-149, 7.0], F32
)
X, Y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))


def same_bits(got: Array, expected: Array) -> None:
    """Equal to the last bit, signs of zeros too; any NaN equals any NaN."""
    number = ~np.isnan(expected)
    assert_array_equal(np.isnan(got), ~number)
    unsigned = f"u{got.itemsize}"
    assert_array_equal(got[number].view(unsigned), expected[number].astype(got.dtype).view(unsigned))


def flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(F32).tiny, np.copysign(F32(0), x), x)


@pytest.mark.parametrize(
    ("opcode", "function"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arithmetic_is_ieee_and_flushes_when_told(opcode: str, function: Any) -> None:
    same_bits(compute(f"{opcode}.rn.f32 %x, %a, %b;", X, Y), function(X, Y))
    same_bits(compute(f"{opcode}.rn.ftz.f32 %x, %a, %b;", X, Y), flushed(function(flushed(X), flushed(Y))))
    same_bits(
        compute(f"{opcode}.rn.f64 %x, %a, %b;", X.astype("f8"), Y.astype("f8")),
        function(X.astype("f8"), Y.astype("f8")),
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_roots_and_reciprocals() -> None:
    same_bits(compute("sqrt.rn.f32 %x, %a;", SPECIAL), np.sqrt(SPECIAL))
    same_bits(compute("rcp.rn.f32 %x, %a;", SPECIAL), F32(1) / SPECIAL)
    same_bits(compute("rcp.approx.ftz.f32 %x, %a;", SPECIAL), flushed(F32(1) / flushed(SPECIAL)))
    same_bits(compute("neg.f32 %x, %a;", SPECIAL), -SPECIAL)
    same_bits(compute("abs.f32 %x, %a;", SPECIAL), np.abs(SPECIAL))


def test_minimum_and_maximum_prefer_numbers_and_order_zeros() -> None:
    a = np.array([np.nan, 1.0, np.nan, -0.0, 0.0, -0.0, 2.0], F32)
    b = np.array([3.0, np.nan, np.nan, 0.0, -0.0, -0.0, -2.0], F32)
    same_bits(compute("max.f32 %x, %a, %b;", a, b), np.array([3, 1, np.nan, 0.0, 0.0, -0.0, 2], F32))
    same_bits(compute("min.f32 %x, %a, %b;", a, b), np.array([3, 1, np.nan, -0.0, -0.0, -0.0, -2], F32))
    same_bits(compute("max.NaN.f32 %x, %a, %b;", a[:3], b[:3]), np.full(3, np.nan, F32))


def exact_f32(value: Fraction, direction: str = "rn") -> np.float32:
    """The float32 that a fraction rounds to, by comparing it with its neighbours."""
    near = F32(float(value))  # float64 first: at most one step away
    candidates = [np.nextafter(near, F32(-np.inf)), near, np.nextafter(near, F32(np.inf))]
    below = max((c for c in candidates if Fraction(float(c)) <= value), key=float)
    above = min((c for c in candidates if Fraction(float(c)) >= value), key=float)
    if direction == "rm" or (direction == "rz" and value > 0):
        return below
    if direction in ("rp", "rz"):
        return above
    low, high = value - Fraction(float(below)), Fraction(float(above)) - value
    if low == high:
        return below if int(below.view(np.uint32)) % 2 == 0 else above
    return below if low < high else above


def awkward(count: int = 400) -> tuple[Array, Array, Array]:
    """Products that nearly cancel or that end just beside a tie: where rounding twice goes wrong."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal(count).astype(F32)
    y = rng.standard_normal(count).astype(F32)
    z = (-x.astype("f8") * y * (1 + rng.choice([0, 1e-7, 1e-3, 1], count))).astype(F32)
    # 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: half a step; a tiny addend decides
    x[:4], y[:4] = 1 + 2**-12, 1 + 2**-12
    z[:4] = [0, 2**-80, -(2**-80), 2**-24]
    return x, y, z


@pytest.mark.parametrize("direction", ["rn", "rm", "rp", "rz"])
def test_fused_multiply_add_rounds_once(direction: str) -> None:
    x, y, z = awkward()
    expected = [
        exact_f32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)), direction)
        for a, b, c in zip(x, y, z, strict=True)
    ]
    got = compute(f"fma.{direction}.f32 %x, %a, %b, %c;", x, y, z)
    assert_array_equal(got, np.array(expected, F32))


def test_the_awkward_products_tell_one_rounding_from_two() -> None:
    x, y, z = awkward()
    fused = compute("fma.rn.f32 %x, %a, %b, %c;", x, y, z)
    through_f64 = (x.astype("f8") * y + z).astype(F32)
    assert 0 < np.count_nonzero(fused != through_f64) < 10  # rare, and therefore easily missed
    assert np.count_nonzero(fused != x * y + z) > 50


@pytest.mark.parametrize("direction", ["rm", "rp", "rz"])
def test_sums_and_products_round_in_a_direction(direction: str) -> None:
    x, y, _ = awkward()
    pairs = list(zip(x, y, strict=True))
    for opcode, function in (("add", Fraction.__add__), ("sub", Fraction.__sub__), ("mul", Fraction.__mul__)):
        expected = [exact_f32(function(Fraction(float(a)), Fraction(float(b))), direction) for a, b in pairs]
        assert_array_equal(compute(f"{opcode}.{direction}.f32 %x, %a, %b;", x, y), np.array(expected, F32))


def test_fused_multiply_add_of_doubles_is_exact() -> None:
    x, y = np.array([1 + 2**-30, 3.0, np.inf, 0.0]), np.array([1 - 2**-30, 1 / 3, 0.0, -1.0])
    got = compute("fma.rn.f64 %x, %a, %b, %c;", x, y, np.array([-1.0, -1.0, 1.0, -0.0]))
    assert_array_equal(got, [-(2**-60), float(Fraction(3) * Fraction(1 / 3) - 1), np.nan, -0.0])


def test_special_values_go_through_a_fused_multiply_add() -> None:
    a, b, c = np.array([[np.inf, 1, -np.inf], [3e38, 2, 0], [1e-30, 1e-10, 0], [np.nan, 1, 0]], F32).T
    got = compute("fma.rn.f32 %x, %a, %b, %c;", a, b, c)
    same_bits(got, np.array([np.nan, np.inf, 1e-40, np.nan], F32))
    flush = compute("fma.rn.ftz.f32 %x, %a, %b, %c;", np.full(1, 1e-30, F32), np.full(1, -1e-10, F32), np.zeros(1, F32))
    same_bits(flush, np.array([-0.0], F32))


def test_saturation_clamps_and_turns_nan_into_zero() -> None:
    got = compute("add.sat.f32 %x, %a, %b;", np.array([0.25, 2, -3, np.nan], F32), np.full(4, 0.5, F32))
    assert_array_equal(got, np.array([0.75, 1, 0, 0], F32))


@pytest.mark.parametrize(
    ("opcode", "function", "low", "high"),
    [
        ("ex2.approx.ftz", np.exp2, -120, 120),
        ("lg2.approx.ftz", np.log2, 1e-3, 1e6),
        ("sqrt.approx.ftz", np.sqrt, 0, 1e6),
        ("rsqrt.approx.ftz", lambda x: 1 / np.sqrt(x), 1e-6, 1e6),
        ("sin.approx.ftz", np.sin, -3, 3),
        ("cos.approx.ftz", np.cos, -3, 3),
        ("tanh.approx", np.tanh, -3, 3),
    ],
)
def test_approximations_are_the_exact_function_rounded(opcode: str, function: Any, low: float, high: float) -> None:
    x = np.linspace(low, high, 500).astype(F32)
    same_bits(compute(f"{opcode}.f32 %x, %a;", x), function(x.astype("f8")).astype(F32))


@pytest.mark.parametrize("comparison", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_with_nan_are_false_unless_unordered(comparison: str) -> None:
    function = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                "ge": np.greater_equal}[comparison]  # fmt: skip
    nan = np.isnan(X) | np.isnan(Y)
    assert_array_equal(compute(f"setp.{comparison}.f32 %x, %a, %b;", X, Y, out=bool), function(X, Y) & ~nan)
    assert_array_equal(compute(f"setp.{comparison}u.f32 %x, %a, %b;", X, Y, out=bool), function(X, Y) | nan)
    fx, fy = flushed(X), flushed(Y)
    assert_array_equal(compute(f"setp.{comparison}.ftz.f32 %x, %a, %b;", X, Y, out=bool), function(fx, fy) & ~nan)


def test_num_and_nan_tell_whether_both_are_numbers() -> None:
    nan = np.isnan(X) | np.isnan(Y)
    assert_array_equal(compute("setp.num.f32 %x, %a, %b;", X, Y, out=bool), ~nan)
    assert_array_equal(compute("setp.nan.f32 %x, %a, %b;", X, Y, out=bool), nan)


# --- conversions


def test_floats_become_integers_with_clamps_and_nan_rules() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3e9, -3e9, np.nan, np.inf, -np.inf], F32)
    top, low = 2**31 - 1, -(2**31)
    ends = [top, low, 0, top, low]
    assert_array_equal(compute("cvt.rzi.s32.f32 %x, %a;", x, out=np.int32), [0, 1, 2, 0, -1, *ends])
    assert_array_equal(compute("cvt.rni.s32.f32 %x, %a;", x, out=np.int32), [0, 2, 2, 0, -2, *ends])
    assert_array_equal(compute("cvt.rmi.s32.f32 %x, %a;", x, out=np.int32), [0, 1, 2, -1, -2, *ends])
    assert_array_equal(compute("cvt.rpi.s32.f32 %x, %a;", x, out=np.int32), [1, 2, 3, 0, -1, *ends])
    unsigned = [0, 1, 2, 0, 0, 3000000000, 0, 0, 2**32 - 1, 0]
    assert_array_equal(compute("cvt.rzi.u32.f32 %x, %a;", x, out=np.uint32), unsigned)
    wide = [0, 1, 2, 0, -1, 3000000000, -3000000000, -(2**63), 2**63 - 1, -(2**63)]
    assert_array_equal(compute("cvt.rzi.s64.f32 %x, %a;", x, out=np.int64), wide)


def test_integers_become_the_nearest_floats() -> None:
    x = np.array([0, 1, -1, 2**24 + 1, 2**24 + 3, -(2**31), 2**31 - 1], np.int32)
    assert_array_equal(compute("cvt.rn.f32.s32 %x, %a;", x, out=F32), [0, 1, -1, 2**24, 2**24 + 4, -(2.0**31), 2.0**31])
    wide = np.array([2**62 + 1, -(2**62) - 2**38, 2**53 + 1], np.int64)
    expected = [exact_f32(Fraction(int(v))) for v in wide]
    assert_array_equal(compute("cvt.rn.f32.s64 %x, %a;", wide, out=F32), np.array(expected, F32))


def test_floats_round_to_integral_floats() -> None:
    x = np.array([0.5, 1.5, -0.5, -1.5], F32)
    same_bits(compute("cvt.rmi.f32.f32 %x, %a;", x), np.floor(x))
    same_bits(compute("cvt.rni.f32.f32 %x, %a;", x), np.rint(x))
    assert_array_equal(
        compute("cvt.ftz.sat.f32.f32 %x, %a;", np.array([-1, 0.5, 2, np.nan, 1e-40], F32)), [0, 0.5, 1, 0, 0]
    )


def test_halves_and_back() -> None:
    x = np.array([1, 65504, 65520, 1e-8, -2.0009765625, np.nan, 1 + 2**-11, 1 + 3 * 2**-11], F32)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    half = compute("cvt.rn.f16.f32 %x, %a;", x, out=np.float16)
    same_bits(half, expected)
    same_bits(compute("cvt.f32.f16 %x, %a;", half, out=F32), expected.astype(F32))


def test_bfloat16_rounds_to_nearest_even() -> None:
    bits = np.array([0x3F800000, 0x3F808000, 0x3F808001, 0x3F818000, 0x7F800000, 0x7FC00001, 0x7F7FFFFF], np.uint32)
    brain = compute("cvt.rn.bf16.f32 %x, %a;", bits.view(F32), out=np.uint16)
    assert_array_equal(brain, [0x3F80, 0x3F80, 0x3F81, 0x3F82, 0x7F80, 0x7FFF, 0x7F80])
    assert_array_equal(
        compute("cvt.f32.bf16 %x, %a;", brain[:5], out=F32).view(np.uint32), brain[:5].astype("u4") << 16
    )


def test_two_halves_in_one_register_have_the_first_operand_on_top() -> None:
    got = compute("cvt.rn.f16x2.f32 %x, %a, %b;", np.array([1], F32), np.array([-2], F32), out=np.uint32)
    assert_array_equal(got, [0x3C00_C000])
    brain = compute("cvt.rn.bf16x2.f32 %x, %a, %b;", np.array([1], F32), np.array([-2], F32), out=np.uint32)
    assert_array_equal(brain, [0x3F80_C000])


@pytest.mark.parametrize(
    "line", ["add.rx.f32 %x, %a, %a;", "sqrt.rz.f32 %x, %a;", "cvt.rz.f32.f64 %x, %a;", "fma.rn.f16 %x, %a, %a, %a;"]
)
def test_a_modifier_that_is_not_known_is_not_passed_over(line: str) -> None:
    with pytest.raises(PtxError, match="unknown to the PTX runner"):
        compute(line, np.ones(1, F32))


def test_half_toward_zero_cuts_and_never_becomes_infinite() -> None:
    # 1 + 2^-11 + 2^-12 lies nearer to 1 + 2^-10 and is cut to 1; 65520 would round to infinity, 65504 is the largest
    x = np.array([1 + 2**-11 + 2**-12, -(1 + 2**-11 + 2**-12), 65520, -65520, np.inf, 0.5, -0.0, np.nan], F32)
    expected = np.array([1, -1, 65504, -65504, np.inf, 0.5, -0.0, np.nan], np.float16)
    same_bits(compute("cvt.rz.f16.f32 %x, %a;", x, out=np.float16), expected)
    nearest = np.array([1 + 2**-10, -(1 + 2**-10), np.inf, -np.inf, np.inf, 0.5, -0.0, np.nan], np.float16)
    same_bits(compute("cvt.rn.f16.f32 %x, %a;", x, out=np.float16), nearest)
