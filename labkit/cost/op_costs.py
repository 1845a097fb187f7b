"""What one op costs by its shapes: operations, bytes, kernels. Plain arithmetic; it loads no torch.

An op is described by what it reads and writes. Bytes are those that must move at least once: each operand counts once,
a broadcast one at its own size, a gather at the rows that it takes and not at the table. Operations count a
transcendental function as one, like an addition: elementwise kernels are bound by bytes on every GPU of the table.
Kernels are those of PyTorch's CUDA backend; where an op runs several, the number is in ``_SEVERAL`` with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from labkit.errors import CostError


class Operand(NamedTuple):
    """A tensor as an op sees it.

    Attributes:
        shape: its sizes.
        itemsize: bytes of an element.
        distinct: elements that lie in memory: a broadcast dimension counts once.
    """

    shape: tuple[int, ...]
    itemsize: int
    distinct: int

    @property
    def numel(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that lie in memory."""
        return self.distinct * self.itemsize


class Call(NamedTuple):
    """An op with its operands.

    Attributes:
        name: without namespace and overload, such as ``addmm``.
        inputs: tensors that it reads, in the order of its arguments, lists flattened.
        outputs: tensors that it writes: what it changes in place, or else what it returns.
        tags: of the op, as torch gives them.
        known_flops: what ``torch.utils.flop_counter`` says; None where that has no formula.
        numbers: its whole-number arguments.
    """

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    tags: frozenset[str] = frozenset()
    known_flops: int | None = None
    numbers: tuple[int, ...] = ()


class Matmul(NamedTuple):
    """Sizes of a (batched) matrix product, (batch, m, k) x (batch, k, n)."""

    batch: int
    m: int
    n: int
    k: int


class OpCost(NamedTuple):
    """What an op costs.

    Attributes:
        flops: operations; a multiply-add is two.
        read_bytes: bytes read.
        written_bytes: bytes written.
        kernels: device kernels, each of which is one launch in eager mode.
        matmul: sizes of the product, for ops that run on tensor cores where those are allowed. A fused op counts as
            the one product that has its operations.
        ids: of the gradient of a table: how many ids it adds up; few of them take fewer kernels (``FEW_IDS``).
        fresh_bytes: of its operands, what the op before has written; the trace knows. A gather reads a part of that.
    """

    flops: int
    read_bytes: int
    written_bytes: int
    kernels: int
    matmul: Matmul | None = None
    ids: int | None = None
    fresh_bytes: int = 0


#: Ops of more than one kernel; PyTorch 2.x, ATen/native/cuda. Counted in the source, not measured; libraries change
#: such numbers by one or two. A matrix product that a library splits along k runs one more, to add up the parts: which
#: ones depends on the GPU and is not counted.
#: ``binary_cross_entropy_with_logits`` (ATen/native/Loss.cpp, no weights, no reduction): log sigmoid, 1 - target, times
#: the input, minus the log sigmoid.
#: ``repeat_interleave`` with its output size (Repeat.cu): the sums so far (CUB's scan: two kernels), then the spread.
#: ``native_layer_norm_backward`` (layer_norm_kernel.cu): the gradient of the input, and those of weight and bias.
#: The others are sort-based sums of rows with equal indices.
#: ``embedding_dense_backward`` (Embedding.cu, more than 3072 indices): zeros, arange, radix sort of the ids (histogram,
#: scan, 3 passes of 8 bits), and 8 kernels of ``embedding_backward_cuda_kernel`` (EmbeddingBackwardKernel.cu).
#: ``index_put`` with accumulation (Indexing.cu): linear index, arange, radix sort (8 passes of int64 at most: 5 taken),
#: the sum; and the copy of its input where it is not in place.
_SEVERAL = {
    "binary_cross_entropy_with_logits": 4,
    "repeat_interleave": 3,
    "native_layer_norm_backward": 2,
    "embedding_dense_backward": 15,
    "_embedding_bag_backward": 15,
    "index_put": 9,
    "index_put_": 8,
    "_index_put_impl_": 8,
}

#: ``embedding_dense_backward`` of no more ids than that does not sort them: a table of zeros, and one kernel
#: (Embedding.cu, ``embedding_backward_feature_kernel``). Costs are of many ids; ``StepCost`` takes the rest off.
FEW_IDS = 3072
FEWER_KERNELS = _SEVERAL["embedding_dense_backward"] - 2

_NO_KERNEL = frozenset({"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "lift_fresh"})
_FILLS = frozenset(
    {
        *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"),
        *("fill_", "zero_", "arange", "scalar_tensor", "eye", "rand", "randn", "bernoulli_", "uniform_", "normal_"),
    }
)
_COPIES = frozenset(
    {
        *("cat", "stack", "clone", "copy_", "_to_copy", "constant_pad_nd", "slice_backward", "select_backward", "flip"),
        *("repeat", "roll", "tril", "tril_", "triu", "triu_", "unfold_backward", "as_strided_copy", "index_fill"),
    }
)
#: Elementwise ops that torch does not tag so, with operations an element of the largest operand.
_ELEMENTWISE = {
    "_prelu_kernel": 2,
    "_prelu_kernel_backward": 3,
    "binary_cross_entropy_with_logits": 8,
    "log_sigmoid_forward": 4,
    "log_sigmoid_backward": 4,
    "softplus_backward": 4,
    "elu_backward": 3,
    "leaky_relu_backward": 2,
    "hardtanh_backward": 2,
    "native_dropout": 2,
    "native_dropout_backward": 2,
    "repeat_interleave": 1,
    "bucketize": 1,
    "where": 1,
}
#: Reductions and scans that torch does not tag so, with operations an element of the first operand.
_REDUCTIONS = {
    "_softmax": 5,
    "_log_softmax": 5,
    "_softmax_backward_data": 4,
    "_log_softmax_backward_data": 4,
    "native_layer_norm": 8,
    "native_layer_norm_backward": 14,
    "nll_loss_forward": 1,
    "nll_loss_backward": 1,
    "cumsum": 1,
    "diff": 1,
    "linalg_vector_norm": 2,
}
_GATHERS = frozenset({"embedding", "index", "index_select", "gather", "take_along_dim"})
_SCATTERS = frozenset(
    {
        *("index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
        *("index_put", "index_put_", "_index_put_impl_", "scatter", "scatter_", "index_copy", "index_copy_"),
    }
)
_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm"})


def cost_of(call: Call) -> OpCost:
    """The cost of one op.

    Raises:
        CostError: an op that no rule covers; the message names it and where rules are.
    """
    rule = next((rule for names, rule in _RULES if call.name in names), None)
    if rule is None and "pointwise" in call.tags:
        rule = _elementwise
    if rule is None and "reduction" in call.tags:
        rule = _reduction
    if rule is None:
        shapes = " ".join(str(list(operand.shape)) for operand in call.inputs)
        raise CostError(
            f"no cost rule for op {call.name!r} (inputs {shapes}): add it to a table of labkit/cost/op_costs.py."
        )
    return rule(call)


def _read(call: Call) -> int:
    return sum(operand.bytes for operand in call.inputs)


def _written(call: Call) -> int:
    return sum(operand.bytes for operand in call.outputs)


def _largest(call: Call) -> int:
    return max((operand.numel for operand in (*call.inputs, *call.outputs)), default=0)


def _free(call: Call) -> OpCost:
    return OpCost(0, 0, 0, 0)


def _fill(call: Call) -> OpCost:
    return OpCost(0, 0, _written(call), 1)


def _copy(call: Call) -> OpCost:
    """Reads its sources and writes the result; what a pad or a slice's gradient leaves zero is written too."""
    sources = call.inputs[1:] if call.name == "copy_" else call.inputs
    return OpCost(0, sum(operand.bytes for operand in sources), _written(call), 1)


def _elementwise(call: Call) -> OpCost:
    kernels = _SEVERAL.get(call.name, 1)
    return OpCost(_largest(call) * _ELEMENTWISE.get(call.name, 1), _read(call), _written(call), kernels)


def _reduction(call: Call) -> OpCost:
    elements = call.inputs[0].numel if call.inputs else 0
    kernels = _SEVERAL.get(call.name, 1)
    if call.name == "cumsum" and len(call.inputs[0].shape) == 1:
        kernels = 2  # CUB's scan: one kernel makes its tiles ready, one scans (ScanUtils.cuh)
    return OpCost(elements * _REDUCTIONS.get(call.name, 1), _read(call), _written(call), kernels)


def _gather(call: Call) -> OpCost:
    """The rows that are taken, and the indices."""
    indices = sum(operand.bytes for operand in call.inputs[1:])
    return OpCost(0, _written(call) + indices, _written(call), 1)


def _scatter(call: Call) -> OpCost:
    """Source and indices are read; each element of the source is read, added and written at its place."""
    source = call.inputs[-1]
    changed = source.numel * call.outputs[0].itemsize
    read, written, kernels = _read(call) - call.inputs[0].bytes + changed, changed, 1
    if not call.name.endswith("_"):  # on a copy
        read, written, kernels = read + call.inputs[0].bytes, written + _written(call), 2
    return OpCost(source.numel, read, written, _SEVERAL.get(call.name, kernels))


def _embedding_backward(call: Call) -> OpCost:
    """A table of zeros, and each row of the gradient added to its place."""
    gradient, ids = call.inputs[:2]
    read, written = _read(call) + gradient.bytes, _written(call) + gradient.bytes
    return OpCost(gradient.numel, read, written, _SEVERAL[call.name], ids=ids.numel)


def _product(call: Call) -> OpCost:
    left, right = call.inputs[-2:]
    batch = left.shape[0] if len(left.shape) == 3 else 1
    size = Matmul(batch, left.shape[-2], right.shape[-1], left.shape[-1])
    flops = prod(size) * 2
    if call.known_flops is not None and call.known_flops != flops:
        raise CostError(f"op {call.name!r}: {flops} operations counted, torch's flop counter says {call.known_flops}.")
    return OpCost(flops, _read(call), _written(call), 1, size)


def _bags_backward(call: Call) -> OpCost:
    """A table of zeros, and the gradient of a bag added to the row of each of its indices."""
    gradient, indices = call.inputs[0], call.inputs[1]
    added = indices.numel * gradient.shape[-1]
    moved = added * gradient.itemsize
    return OpCost(added, _read(call) + 2 * moved, _written(call) + moved, _SEVERAL[call.name])


def _bags(call: Call) -> OpCost:
    """Rows of the table, added up a bag; what it notes for the backward pass is written too."""
    table, indices = call.inputs[0], call.inputs[1]
    taken = indices.numel * table.shape[-1]
    return OpCost(taken, taken * table.itemsize + _read(call) - table.bytes, _written(call), 1)


def _sparse_product(call: Call) -> OpCost:
    """CSR (E entries) times dense (C, D): the rows that the entries name; ``row_ids`` are for the backward alone."""
    weights, offsets, columns, _, dense = call.inputs
    taken = weights.numel * dense.shape[-1]
    return OpCost(2 * taken, weights.bytes + offsets.bytes + columns.bytes + taken * dense.itemsize, _written(call), 1)


def _attention(call: Call) -> OpCost:
    """Fused: the L**2 scores of a row stay on the chip. The products are one of (R * heads, L, L) with a deeper k.

    Forward one kernel; backward three (FlashAttention-2: row sums, gradients, and the queries' gradient cast), of which
    the scores are computed anew.
    """
    query, key = call.inputs[:2] if call.name == "attention" else call.inputs[1:3]
    if call.known_flops is None:
        raise CostError(f"op {call.name!r} has no flop formula: register one with torch.utils.flop_counter.")
    batch, m, n = prod(query.shape[:-2]), query.shape[-2], key.shape[-2]
    k, rest = divmod(call.known_flops, 2 * max(1, batch * m * n))
    size = Matmul(batch, m, n, k) if not rest else None
    kernels = 1 if call.name == "attention" else 3
    return OpCost(call.known_flops, _read(call), _written(call), kernels, size)


def _gru(call: Call) -> OpCost:
    """One product for all inputs, then two kernels a step: the product with the state, and the gates.

    Backward three a step (gates, gradient of the state, and of what came before) and four products at the end. cuDNN
    does not say what it runs, and for some sizes keeps the whole loop in one kernel: an assumption, on the slow side.
    """
    if call.known_flops is None:
        raise CostError(f"op {call.name!r} has no flop formula: register one with torch.utils.flop_counter.")
    steps = call.numbers[-1]
    kernels = 1 + 2 * steps if call.name == "gru" else 4 + 3 * steps
    return OpCost(call.known_flops, _read(call), _written(call), kernels)


def _foreach(call: Call) -> OpCost:
    """A list of tensors at once; the lists of an optimizer are short enough for one kernel."""
    return OpCost(sum(operand.numel for operand in call.outputs), _read(call), _written(call), 1)


class _Prefix:
    """Names that begin alike, as a container."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __contains__(self, name: object) -> bool:
        return str(name).startswith(self.prefix)


_RULES: tuple[tuple[frozenset[str] | dict[str, int] | _Prefix, Callable[[Call], OpCost]], ...] = (
    (_NO_KERNEL, _free),
    (_FILLS, _fill),
    (_COPIES, _copy),
    (_PRODUCTS, _product),
    (_GATHERS, _gather),
    (_SCATTERS, _scatter),
    (frozenset({"embedding_dense_backward"}), _embedding_backward),
    (frozenset({"_embedding_bag_backward"}), _bags_backward),
    (frozenset({"_embedding_bag", "_embedding_bag_forward_only"}), _bags),
    (frozenset({"spmm"}), _sparse_product),
    (frozenset({"attention", "attention_backward"}), _attention),
    (frozenset({"gru", "gru_backward"}), _gru),
    (_ELEMENTWISE, _elementwise),
    (_REDUCTIONS, _reduction),
    (_Prefix("_foreach_"), _foreach),
)
