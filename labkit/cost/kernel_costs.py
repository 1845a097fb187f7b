"""What the ops of labkit's own kernels cost by their shapes, as ``op_costs`` says it of torch's. It loads no torch.

Bytes are those of the header of each kernel: every event once, no (T, D) in between. An op that pools is two kernels,
the walk over the rows and the sum over the pieces of giant rows; where no row can be a giant the second is not
launched, which is not modelled. Scratch memory of the pieces is not counted, as that of no op is.
"""

from __future__ import annotations

from collections.abc import Callable

from labkit.cost.op_costs import Call, OpCost

#: ``embedding_pool_table_grad``: the stable sort of the ids (histogram, scan, 5 passes of a radix sort of int64, a copy
#: of ids and places), the first event of each item, rows of the events in that order (3), the mean's share (2), the
#: bins of the items (4), and an ``embedding_pool`` (2). Counted in the source, not measured.
_TABLE_GRAD_KERNELS = 21


def _walk(flops_an_element: int, kernels: int) -> Callable[[Call], OpCost]:
    """Each operand once; operations an element of the largest of them."""

    def rule(call: Call) -> OpCost:
        largest = max(operand.numel for operand in (*call.inputs, *call.outputs))
        read, written = (sum(operand.bytes for operand in given) for given in (call.inputs, call.outputs))
        return OpCost(flops_an_element * largest, read, written, kernels)

    return rule


def _looked_up(call: Call, kernels: int) -> OpCost:
    """As ``_walk``, of a table the rows that the ids name: (V, D) table and (T,) ids come before all others."""
    table, ids = call.inputs[:2]
    taken = ids.numel * table.shape[-1]
    read = sum(operand.bytes for operand in call.inputs[1:]) + taken * table.itemsize
    return OpCost(2 * taken, read, sum(operand.bytes for operand in call.outputs), kernels)


def _embedding_pool(call: Call) -> OpCost:
    return _looked_up(call, 2)


def _weight_grad(call: Call) -> OpCost:
    grad, *rest = call.inputs
    return _looked_up(call._replace(inputs=(*rest, grad)), 1)


def _table_grad(call: Call) -> OpCost:
    """Ids are sorted: read and written with their places a pass; then each event reads the gradient of its row."""
    grad, ids = call.inputs[:2]
    taken = ids.numel * grad.shape[-1]
    passes = 5 * 2 * ids.bytes
    read = sum(operand.bytes for operand in call.inputs[1:]) + passes + taken * grad.itemsize
    written = passes + sum(operand.bytes for operand in call.outputs)
    return OpCost(2 * taken, read, written, _TABLE_GRAD_KERNELS)


#: By the name of the op without ``labkit::``. Operations an element of the events: one addition or comparison, a
#: multiplication too where there are weights; the exponential of an event is one of D + 1 and left out.
KERNEL_COSTS: dict[str, Callable[[Call], OpCost]] = {
    "segment_sum": _walk(1, 2),
    "segment_sum_backward": _walk(1, 1),
    "segment_max": _walk(1, 2),
    "segment_max_backward": _walk(1, 1),
    "embedding_pool": _embedding_pool,
    "embedding_pool_table_grad": _table_grad,
    "embedding_pool_weight_grad": _weight_grad,
    "attention_pool": _walk(2, 2),
    "attention_pool_backward": _walk(4, 1),
}
