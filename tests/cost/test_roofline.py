"""Tiles, waves, cache, and what rules a step: small numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labkit.cost.devices import GPUS, Precision
from labkit.cost.op_costs import Matmul, OpCost
from labkit.cost.overheads import Overheads
from labkit.cost.roofline import OpTimes, op_times, product_seconds
from labkit.cost.shapes import BatchShape, Shapes, Term
from labkit.cost.step_cost import StepCost, Traced, fit_step
from labkit.cost.step_time import Bound, step_times

#: A device with round numbers: 4 multiprocessors, 4e9 operations and 1e9 bytes a second, 1000 bytes of cache.
CARD = replace(
    GPUS["H100"],
    sms=4,
    float32_flops=4e9,
    tensor_flops={Precision.TF32: 8e9},
    bandwidth_bytes_per_s=1e9,
    l2_bytes=1000,
)
IDEAL = Overheads(
    *(0.0,) * 7,
    bandwidth_share=1.0,
    flops_share=1.0,
    l2_speedup=2.0,
)
ONE = Shapes.of([BatchShape()])


def product(*size: int, sms: int = 4) -> float:
    """Seconds at one operation a second and multiprocessor."""
    return float(product_seconds(np.array([size], dtype=np.float64), sms, float(sms))[0])


def test_a_whole_tile_takes_its_operations() -> None:
    # one 128 x 128 tile on one multiprocessor, k = 16: nothing to split
    assert product(1, 128, 128, 16, sms=1) == 2 * 128 * 128 * 16
    # four of them run at once on four multiprocessors
    assert product(4, 128, 128, 16) == product(1, 128, 128, 16, sms=1)
    # the fifth needs another wave
    assert product(5, 128, 128, 16) == 2 * product(4, 128, 128, 16)


@pytest.mark.parametrize(("fits", "sticks_out"), [(16, 17), (128, 144)])
def test_what_sticks_out_of_a_tile_costs_a_whole_one(fits: int, sticks_out: int) -> None:
    useful = (sticks_out / fits) ** 2
    slower = product(64, sticks_out, sticks_out, 64) / product(64, fits, fits, 64)
    assert slower > 1.1 * useful


def test_a_deep_product_is_split_among_multiprocessors() -> None:
    # the gradient of a weight: one tile, k = 4 * 4096
    assert product(1, 128, 128, 16_384) == product(1, 128, 128, 16_384, sms=1) / 4
    # parts of k have no fewer than 256
    assert product(1, 16, 16, 256) == product(1, 16, 16, 256, sms=1)


def step(*costs: OpCost) -> StepCost:
    names = tuple(f"op{i}" for i in range(len(costs)))
    return fit_step((Term.ONE,), [BatchShape()], [Traced(names, costs, (), ())])


def test_an_op_takes_the_slower_of_arithmetic_and_bytes() -> None:
    cost = step(OpCost(4000, 3000, 1000, 1), OpCost(8000, 600, 0, 1), OpCost(0, 0, 0, 0), OpCost(4, 250, 250, 1))
    times = op_times(cost, ONE, CARD, Precision.FLOAT32, IDEAL)
    # the view is not there; small operands are no faster where nobody has just written them
    assert times.arithmetic_s.tolist() == [[1e-6, 2e-6, 1e-9]]
    assert times.memory_s.tolist() == [[4e-6, 0.6e-6, 0.5e-6]]
    assert times.work_s.tolist() == [[4e-6, 2e-6, 0.5e-6]]


def test_what_was_just_written_moves_faster_as_far_as_the_cache_holds_it() -> None:
    # 1000 bytes of cache, half of it for what the op before wrote, read twice as fast
    fresh = (0, 400, 500, 501, 2000)
    cost = step(*(OpCost(0, 2000, 1000, 1, fresh_bytes=f) for f in fresh))
    gather = step(OpCost(0, 100, 100, 1, fresh_bytes=400))  # takes a quarter of what is there
    assert op_times(gather, ONE, CARD, Precision.FLOAT32, IDEAL).memory_s[0] == pytest.approx([0.15e-6])
    seconds = op_times(cost, ONE, CARD, Precision.FLOAT32, IDEAL).memory_s[0]
    # 3000 bytes at 1 ns each, half a ns less for each that is found: no cliff at 500
    assert seconds == pytest.approx([3.0e-6, 2.8e-6, 2.75e-6, 2.75e-6, 2.75e-6])


def test_products_run_on_the_units_of_the_precision() -> None:
    size = Matmul(4, 128, 128, 16)
    cost = step(OpCost(2 * 4 * 128 * 128 * 16, 0, 0, 1, size))
    seconds = [
        float(op_times(cost, ONE, CARD, p, IDEAL).arithmetic_s[0, 0]) for p in (Precision.FLOAT32, Precision.TF32)
    ]
    assert seconds == [2 * 4 * 128 * 128 * 16 / 4e9, 2 * 4 * 128 * 128 * 16 / 8e9]


def test_a_matrix_times_a_vector_has_no_tiles() -> None:
    cost = step(OpCost(2 * 1000 * 40, 0, 0, 1, Matmul(1, 1000, 1, 40)))
    assert op_times(cost, ONE, CARD, Precision.TF32, IDEAL).arithmetic_s.tolist() == [[80_000 / 4e9]]


def ops(kernels: int, arithmetic_s: float, memory_s: float) -> OpTimes:
    """One op of arithmetic, one of bytes, and kernels that do nothing."""
    zero = 0.0
    return OpTimes(
        np.array([[arithmetic_s, zero, zero]]), np.array([[zero, memory_s, zero]]), np.array([[1.0, 1.0, kernels - 2]])
    )


OVERHEADS = replace(IDEAL, op_s=2e-6, launch_s=3e-6, step_s=10e-6, kernel_s=1e-6, gap_s=0.5e-6)


def test_a_step_takes_the_slower_of_host_and_device() -> None:
    # host 10 + 20 * 2 + 10 * 3 = 80 us; device 30 + 10 + 10 * 1 = 50 us busy, 10 * 0.5 of gaps
    times = step_times(ops(10, 30e-6, 10e-6), 20, OVERHEADS)
    assert times.step_s == pytest.approx(80e-6)
    assert times.busy_s == pytest.approx(50e-6)
    slow = step_times(ops(10, 30e-6, 90e-6), 20, OVERHEADS)
    assert slow.step_s == pytest.approx(135e-6)
    assert (slow.compute_s, slow.bandwidth_s, slow.launch_s) == (
        pytest.approx(30e-6),
        pytest.approx(90e-6),
        pytest.approx(15e-6),
    )
    assert slow.bounds == (Bound.BANDWIDTH,)


def test_a_step_that_waits_for_the_host_is_launch_bound_however_busy_the_device_is() -> None:
    # host 80 us; device 10 + 54 + 10 us busy, 5 us of gaps: bytes are the largest part of what runs, and rule nothing
    times = step_times(ops(10, 10e-6, 54e-6), 20, OVERHEADS)
    assert times.busy_s == pytest.approx(74e-6)
    assert (times.compute_s, times.bandwidth_s, times.launch_s) == (0.0, 0.0, pytest.approx(80e-6))
    assert times.bounds == (Bound.LAUNCH,)
    fewer_bytes = step_times(ops(10, 10e-6, 5e-6), 20, OVERHEADS)
    assert fewer_bytes.step_s == times.step_s
    more_bytes = step_times(ops(10, 10e-6, 60e-6), 20, OVERHEADS)
    assert more_bytes.step_s > times.step_s
    assert more_bytes.bounds == (Bound.BANDWIDTH,)


def test_a_graph_is_one_launch_with_smaller_gaps() -> None:
    graph = replace(OVERHEADS, graph_launch_s=5e-6, graph_gap_s=0.1e-6)
    times = step_times(ops(10, 30e-6, 10e-6), 20, graph, is_graph=True)
    assert times.step_s == pytest.approx(51e-6)  # busy 50, gaps 1; the host needs 15
    assert times.bounds == (Bound.COMPUTE,)


def test_on_a_cpu_host_and_device_are_one() -> None:
    times = step_times(ops(10, 30e-6, 10e-6), 20, replace(OVERHEADS, is_asynchronous=False))
    assert times.step_s == pytest.approx((80 + 50 + 5) * 1e-6)
