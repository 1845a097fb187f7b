"""What one op costs, from its shapes alone."""

from __future__ import annotations

import pytest

from labkit.cost.kernel_costs import KERNEL_COSTS
from labkit.cost.op_costs import Call, Matmul, OpCost, Operand, cost_of
from labkit.errors import CostError


def floats(*shape: int, distinct: int | None = None) -> Operand:
    numel = Operand(shape, 4, 0).numel
    return Operand(shape, 4, numel if distinct is None else distinct)


def ids(*shape: int) -> Operand:
    return Operand(shape, 8, Operand(shape, 8, 0).numel)


CASES = {
    # 2 * 20 * 80 * 128; reads bias, left and right, writes the result
    "addmm": (
        Call("addmm", (floats(80), floats(20, 128), floats(128, 80)), (floats(20, 80),)),
        OpCost(409_600, 4 * (80 + 20 * 128 + 128 * 80), 4 * 20 * 80, 1, Matmul(1, 20, 80, 128)),
    ),
    "bmm": (
        Call("bmm", (floats(4, 1, 5), floats(4, 5, 32)), (floats(4, 1, 32),)),
        OpCost(2 * 4 * 5 * 32, 4 * (20 + 640), 4 * 128, 1, Matmul(4, 1, 32, 5)),
    ),
    # five rows are taken of a table of 100 000
    "embedding": (
        Call("embedding", (floats(100_000, 32), ids(5)), (floats(5, 32),)),
        OpCost(0, 5 * 32 * 4 + 5 * 8, 5 * 32 * 4, 1),
    ),
    # a broadcast operand counts at its own size: 4 * 32 of 4 * 5 * 32
    "sub": (
        Call("sub", (floats(4, 5, 32), floats(4, 5, 32, distinct=128)), (floats(4, 5, 32),), frozenset({"pointwise"})),
        OpCost(640, 4 * (640 + 128), 4 * 640, 1),
    ),
    "sum": (Call("sum", (floats(20, 40),), (floats(1, 40),), frozenset({"reduction"})), OpCost(800, 3200, 160, 1)),
    "new_zeros": (Call("new_zeros", (floats(10),), (floats(4),)), OpCost(0, 0, 16, 1)),
    "empty": (Call("empty", (), (floats(4),)), OpCost(0, 0, 0, 0)),
    # a copy of the target, then ten elements read with their indices, added and written
    "index_add": (
        Call("index_add", (floats(4), ids(10), floats(10)), (floats(4),)),
        OpCost(10, 16 + 80 + 40 + 40, 16 + 40, 2),
    ),
    "index_add_": (Call("index_add_", (floats(4), ids(10), floats(10)), (floats(4),)), OpCost(10, 160, 40, 1)),
    # a table of zeros of 100 rows, and three rows of a gradient added to it
    "embedding_dense_backward": (
        Call("embedding_dense_backward", (floats(3, 2), ids(3)), (floats(100, 2),)),
        OpCost(6, 24 + 24 + 24, 800 + 24, 15, ids=3),
    ),
    "binary_cross_entropy_with_logits": (
        Call("binary_cross_entropy_with_logits", (floats(5), floats(5)), (floats(5),)),
        OpCost(40, 40, 20, 4),
    ),
    "repeat_interleave": (Call("repeat_interleave", (ids(3),), (ids(10),)), OpCost(10, 24, 80, 3)),
    "layer_norm_backward": (
        Call("native_layer_norm_backward", (floats(5, 2),) * 2, (floats(5, 2), floats(2), floats(2))),
        OpCost(140, 80, 56, 2),
    ),
    # the scan of a vector, and one along the rows of a matrix
    "cumsum": (Call("cumsum", (ids(5),), (ids(5),)), OpCost(5, 40, 40, 2)),
    "cumsum of rows": (Call("cumsum", (ids(5, 2),), (ids(5, 2),)), OpCost(10, 80, 80, 1)),
    # E = 10 entries times rows of 32: weights, offsets and columns, ten rows of the dense matrix
    "spmm": (
        Call("spmm", (floats(10), ids(5), ids(10), ids(10), floats(10, 32)), (floats(4, 32),)),
        OpCost(640, 40 + 40 + 80 + 1280, 512, 1),
    ),
    # three steps: one product for the inputs, two kernels a step
    "gru": (Call("gru", (floats(6, 2),), (floats(6, 4),), known_flops=99, numbers=(2, 3)), OpCost(99, 48, 96, 7)),
    # two products of 2 * (2 * 3) * 5 * 5 * 2 = 600 operations are together one with k = 2 + 2
    "attention": (
        Call("attention", (floats(2, 3, 5, 2),) * 3, (floats(2, 3, 5, 2),), known_flops=1200),
        OpCost(1200, 720, 240, 1, Matmul(6, 5, 5, 4)),
    ),
}


#: T = 10 events of D = 8 in B = 4 rows, as offsets (5,) and bins (9,).
EVENTS, PER_ROW, ROWS = floats(10, 8), floats(4, 8), (ids(5), Operand((9,), 4, 9))
OWN = {
    "segment_sum": (Call("segment_sum", (EVENTS, *ROWS), (PER_ROW,)), OpCost(80, 320 + 76, 128, 2)),
    "spread": (Call("segment_sum_backward", (PER_ROW, *ROWS), (EVENTS,)), OpCost(80, 128 + 76, 320, 1)),
    # ten rows are taken of a table of 1000
    "embedding_pool": (
        Call("embedding_pool", (floats(1000, 8), ids(10), *ROWS), (PER_ROW,)),
        OpCost(160, 80 + 76 + 320, 128, 2),
    ),
    "weight_grad": (
        Call("embedding_pool_weight_grad", (PER_ROW, floats(1000, 8), ids(10), *ROWS), (floats(10),)),
        OpCost(160, 128 + 80 + 76 + 320, 40, 1),
    ),
    # five passes over ids and places, then ten rows of the gradient
    "table_grad": (
        Call("embedding_pool_table_grad", (PER_ROW, ids(10), ids(5)), (floats(1000, 8),)),
        OpCost(160, 80 + 40 + 800 + 320, 800 + 32_000, 21),
    ),
    "attention": (
        Call("attention_pool", (floats(10), EVENTS, *ROWS), (PER_ROW, floats(4), floats(4))),
        OpCost(160, 40 + 320 + 76, 128 + 32, 2),
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_cost_of_the_ops_of_our_kernels(name: str) -> None:
    call, cost = OWN[name]
    assert KERNEL_COSTS[call.name](call) == cost


@pytest.mark.parametrize("name", CASES)
def test_cost(name: str) -> None:
    call, cost = CASES[name]
    assert cost_of(call) == cost


def test_an_op_without_a_rule_is_named() -> None:
    with pytest.raises(CostError, match=r"no cost rule for op 'fft_rfft' \(inputs \[3, 4\]\)"):
        cost_of(Call("fft_rfft", (floats(3, 4),), (floats(3, 4),)))


def test_a_product_that_torch_counts_otherwise_is_refused() -> None:
    with pytest.raises(CostError, match="op 'mm': 24 operations counted, torch's flop counter says 25"):
        cost_of(Call("mm", (floats(2, 3), floats(3, 2)), (floats(2, 2),), known_flops=25))
