"""Fits are exact or refused."""

from __future__ import annotations

import pytest

from labkit.cost.basis import Fit, evaluate
from labkit.cost.devices import GPUS, Precision
from labkit.cost.op_costs import OpCost
from labkit.cost.overheads import ASSUMED
from labkit.cost.roofline import op_times
from labkit.cost.shapes import BASES, BatchShape, Shapes, Term, terms_of
from labkit.cost.step_cost import Traced, fit_step, refuse_misfit
from labkit.errors import CostError

BASIS = (Term.ONE, Term.ROWS, Term.SLOTS, Term.SQUARES)
SHAPES = [BatchShape(rows=r, width=w) for r, w in ((2, 3), (3, 5), (4, 2), (5, 7))]


def quantity(shape: BatchShape) -> int:
    return int(7 - 3 * shape.rows + 11 * shape.rows * shape.width + 2 * shape.rows * shape.width**2)


def test_coefficients_are_found_and_hold_everywhere() -> None:
    coefficients = Fit(BASIS, SHAPES).coefficients([[quantity(s), 5] for s in SHAPES])
    assert coefficients.T.tolist() == [[7, -3, 11, 2], [5, 0, 0, 0]]
    far = BatchShape(rows=65_536, width=4096)
    assert evaluate(coefficients, BASIS, Shapes.of([far])).tolist() == [[quantity(far), 5]]


def test_terms_by_hand() -> None:
    # 5 events are 2 windows of 4
    shape = Shapes.of([BatchShape(rows=2, width=3, events=5, longest=4, segments=6, filled=1)])
    assert terms_of(shape, tuple(Term)).tolist() == [[1, 2, 6, 18, 5, 3, 9, 4, 2, 8, 32, 6, 1]]


def test_shapes_that_do_not_tell_terms_apart_are_refused() -> None:
    with pytest.raises(CostError, match="the 4 traced shapes do not tell the terms of the basis apart"):
        Fit(BASIS, [*SHAPES[:3], SHAPES[0]])
    with pytest.raises(CostError, match="as many shapes as terms: got 3 shapes for 4 terms"):
        Fit(BASIS, SHAPES[:3])


def test_a_coefficient_that_is_no_float64_is_refused() -> None:
    shapes = [BatchShape(rows=r) for r in (2, 5)]
    with pytest.raises(CostError, match="a coefficient in parts of 3 is no float64"):
        Fit((Term.ONE, Term.ROWS), shapes).coefficients([[1], [2]])


def traced(shape: BatchShape, flops: int | None = None, names: tuple[str, ...] = ("view", "mul")) -> Traced:
    work = OpCost(quantity(shape) if flops is None else flops, 8, 4, 1)
    return Traced(names, (OpCost(0, 0, 0, 0), work), (int(shape.rows) * 4,), ((1, 0, 1),))


def test_a_step_is_checked_where_it_was_not_fitted() -> None:
    cost = fit_step(BASIS, SHAPES, [traced(s) for s in SHAPES])
    held_out = BatchShape(rows=9, width=11)
    refuse_misfit(cost, held_out, traced(held_out))
    assert cost.totals(Shapes.of([held_out])).tolist() == [[quantity(held_out), 8, 4, 1]]
    assert (cost.device_ops.tolist(), cost.ops_per_step) == ([1], 2)
    with pytest.raises(
        CostError, match=r"op mul does not fit the basis 1, rows, .*: flops at .* is 5, the fit says 3247"
    ):
        refuse_misfit(cost, held_out, traced(held_out, flops=5))


def test_a_gradient_of_few_ids_runs_fewer_kernels() -> None:
    def of(shape: BatchShape) -> Traced:
        return Traced(("table",), (OpCost(0, 8, 4, 15, ids=int(shape.rows)),), (), ())

    shapes = [BatchShape(rows=r) for r in (2, 5)]
    cost = fit_step((Term.ONE, Term.ROWS), shapes, [of(s) for s in shapes])
    at = Shapes.of([BatchShape(rows=r) for r in (3072, 3073)])
    assert cost.totals(at)[:, 3].tolist() == [2, 15]
    times = op_times(cost, at, GPUS["H100"], Precision.FLOAT32, ASSUMED)
    assert times.kernels.tolist() == [[2], [15]]


def test_other_ops_at_another_shape_are_named() -> None:
    traces = [traced(s) for s in SHAPES[:3]] + [traced(SHAPES[3], names=("view", "sort"))]
    with pytest.raises(CostError, match="the ops of a step change with its shape: op number 1 is mul and sort"):
        fit_step(BASIS, SHAPES, traces)


def test_tensors_that_come_and_go_otherwise_are_refused() -> None:
    traces = [traced(s) for s in SHAPES]
    traces[1] = traces[1]._replace(events=((0, 0, 1),))
    with pytest.raises(CostError, match="tensors come and go differently at another shape, first at op mul"):
        fit_step(BASIS, SHAPES, traces)


def test_every_layout_has_a_basis() -> None:
    assert all(basis[0] is Term.ONE and len(set(basis)) == len(basis) for basis in BASES.values())
