"""StepCost: what a step of a model costs at any batch shape, fitted exactly to a handful of traces. NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.cost.basis import Fit, evaluate
from labkit.cost.op_costs import FEW_IDS, FEWER_KERNELS, Matmul, OpCost
from labkit.cost.shapes import BatchShape, Shapes, Term
from labkit.errors import CostError


class Traced(NamedTuple):
    """What a fit needs of a traced step; ``StepTrace`` of ``labkit.cost.trace`` has it.

    Attributes:
        names: of the ops, in the order they ran.
        costs: of each op.
        sizes: bytes of each storage.
        events: (op, storage, +1 comes or -1 goes).
    """

    names: tuple[str, ...]
    costs: tuple[OpCost, ...]
    sizes: tuple[int, ...]
    events: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class StepCost:
    """A step as sums of terms.

    Attributes:
        basis: the terms.
        names: of all ops, those that do nothing on the device (views, allocations) included.
        device_ops: (d,) int64, the ops that do something on the device, as positions in ``names``.
        flops, read_bytes, written_bytes: (terms, d) coefficients.
        fresh_bytes: (terms, d) coefficients of the operands that the op before has written.
        kernels: (terms, d) coefficients; a recurrent network runs more of them the longer its rows are. ``totals``
            knows that the gradient of a table runs fewer for few ids.
        matmuls: (p,) int64, which of the d are matrix products.
        matmul_sizes: (terms, 4 p) coefficients of batch, m, n, k of each.
        lookups: (q,) int64, which of the d are gradients of tables.
        ids: (terms, q) coefficients of the ids that each adds up.
        storages: (terms, s) coefficients of the bytes of each storage.
        event_storage: (e,) int64, which storage comes or goes.
        event_sign: (e,) +1 or -1.
        device: (terms, 5 d + 4 p) operations, bytes moved, read and fresh, and kernels of each, and sizes of products,
            side by side: one product with the terms of a shape gives them all.
        alive: (s, c) 1 where a storage is there at a moment; those moments alone that may be the peak.
        sums: (terms, 4) operations, bytes read and written, and kernels of all ops together.
    """

    basis: tuple[Term, ...]
    names: tuple[str, ...]
    device_ops: NDArray[np.int64]
    flops: NDArray[np.float64]
    read_bytes: NDArray[np.float64]
    written_bytes: NDArray[np.float64]
    fresh_bytes: NDArray[np.float64]
    kernels: NDArray[np.float64]
    matmuls: NDArray[np.int64]
    matmul_sizes: NDArray[np.float64]
    lookups: NDArray[np.int64]
    ids: NDArray[np.float64]
    storages: NDArray[np.float64]
    event_storage: NDArray[np.int64]
    event_sign: NDArray[np.int64]
    device: NDArray[np.float64] = field(init=False)
    alive: NDArray[np.float64] = field(init=False)
    sums: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Put the coefficients of what is evaluated together side by side."""
        moved = self.read_bytes + self.written_bytes
        parts = (self.flops, self.read_bytes, self.written_bytes, self.kernels)
        columns = (self.flops, moved, self.read_bytes, self.fresh_bytes, self.kernels, self.matmul_sizes)
        object.__setattr__(self, "device", np.hstack(columns))
        alive = _candidates(self.event_storage, self.event_sign, self.storages.shape[1])
        object.__setattr__(self, "alive", alive)
        object.__setattr__(self, "sums", np.stack([part.sum(axis=1) for part in parts], axis=1))

    @property
    def ops_per_step(self) -> int:
        """Ops that the host dispatches in one step, views included."""
        return len(self.names)

    def totals(self, shapes: Shapes) -> NDArray[np.float64]:
        """(n, 4) operations, bytes read and written, and kernels of a step at (n,) shapes; exact for whole numbers."""
        found = evaluate(self.sums, self.basis, shapes)
        found[:, 3] -= self.saved_kernels(shapes).sum(axis=1)
        return found

    def saved_kernels(self, shapes: Shapes) -> NDArray[np.float64]:
        """(n, q) kernels that the gradients of tables do not run, of so few ids that nothing is sorted."""
        return np.where(evaluate(self.ids, self.basis, shapes) <= FEW_IDS, float(FEWER_KERNELS), 0.0)


def fit_step(basis: tuple[Term, ...], shapes: Sequence[BatchShape], traces: Sequence[Traced]) -> StepCost:
    """Fit a step to its traces at as many shapes as the basis has terms.

    Raises:
        CostError: the ops or their allocations change with the shape: the message names the op.
    """
    first = traces[0]
    for trace in traces[1:]:
        _refuse_other_ops(first, trace)
    fit = Fit(basis, shapes)
    active = [i for i, name in enumerate(first.names) if any(_is_active(t.costs[i]) for t in traces)]
    products = [at for at, i in enumerate(active) if first.costs[i].matmul is not None]

    lookups = [at for at, i in enumerate(active) if first.costs[i].ids is not None]

    def quantity(name: str) -> NDArray[np.float64]:
        return fit.coefficients([[getattr(t.costs[i], name) for i in active] for t in traces])

    sizes = [[x for at in products for x in _product(t.costs[active[at]])] for t in traces]
    return StepCost(
        basis=basis,
        names=first.names,
        device_ops=np.array(active, dtype=np.int64),
        flops=quantity("flops"),
        read_bytes=quantity("read_bytes"),
        written_bytes=quantity("written_bytes"),
        fresh_bytes=quantity("fresh_bytes"),
        kernels=quantity("kernels"),
        matmuls=np.array(products, dtype=np.int64),
        matmul_sizes=fit.coefficients(sizes),
        lookups=np.array(lookups, dtype=np.int64),
        ids=fit.coefficients([[t.costs[active[at]].ids or 0 for at in lookups] for t in traces]),
        storages=fit.coefficients([t.sizes for t in traces]),
        event_storage=np.array([storage for _, storage, _ in first.events], dtype=np.int64),
        event_sign=np.array([sign for _, _, sign in first.events], dtype=np.int64),
    )


def refuse_misfit(cost: StepCost, shape: BatchShape, trace: Traced) -> None:
    """Compare a fit with a trace at a shape that it has not seen: every op and every storage, to the last digit.

    Raises:
        CostError: something differs; the message names the op, the figure and both values.
    """
    if trace.names != cost.names:
        _refuse_other_names(cost.names, trace.names)
    at = Shapes.of([shape])
    ops = [trace.costs[i] for i in cost.device_ops]
    expected: dict[str, tuple[NDArray[np.float64], list[Any]]] = {
        "flops": (cost.flops, [op.flops for op in ops]),
        "read_bytes": (cost.read_bytes, [op.read_bytes for op in ops]),
        "written_bytes": (cost.written_bytes, [op.written_bytes for op in ops]),
        "fresh_bytes": (cost.fresh_bytes, [op.fresh_bytes for op in ops]),
        "kernels": (cost.kernels, [op.kernels for op in ops]),
    }
    for name, (coefficients, traced) in expected.items():
        for i, (fitted, real) in enumerate(zip(evaluate(coefficients, cost.basis, at)[0], traced, strict=True)):
            if fitted != real:
                op = cost.names[cost.device_ops[i]]
                raise CostError(
                    f"op {op} does not fit the basis {', '.join(cost.basis)}: {name} at {shape} is {real}, "
                    f"the fit says {fitted:.10g}. The model has a term that the basis lacks."
                )
    sizes = evaluate(cost.matmul_sizes, cost.basis, at)[0]
    real_sizes = [x for i in cost.matmuls for x in _product(ops[int(i)])]
    storages = evaluate(cost.storages, cost.basis, at)[0]
    if sizes.tolist() != real_sizes or storages.tolist() != list(trace.sizes):
        raise CostError(f"sizes of products or tensors at {shape} do not fit the basis {', '.join(cost.basis)}.")


def _candidates(storage: NDArray[np.int64], sign: NDArray[np.int64], storages: int) -> NDArray[np.float64]:
    """(s, c) which storages are there at each moment that may be the peak, whatever their sizes."""
    changes = np.zeros((storages, storage.size))
    changes[storage, np.arange(storage.size)] = sign
    alive = np.cumsum(changes, axis=1)
    # a peak is where something has come and the next thing goes
    peaks = (sign > 0) & (np.append(sign[1:], -1) < 0)
    alive = np.unique(alive[:, peaks], axis=1)
    among = alive.T @ alive  # storages that two moments share
    has_all = (among == among.diagonal()[:, None]) & ~np.eye(alive.shape[1], dtype=bool)
    return np.ascontiguousarray(alive[:, ~has_all.any(axis=1)])


def _is_active(cost: OpCost) -> bool:
    return bool(cost.kernels or cost.flops or cost.read_bytes or cost.written_bytes)


def _product(cost: OpCost) -> Matmul:
    if cost.matmul is None:
        raise CostError("an op is a matrix product at one shape and none at another.")
    return cost.matmul


def _refuse_other_ops(first: Traced, other: Traced) -> None:
    if other.names != first.names:
        _refuse_other_names(first.names, other.names)
    if other.events != first.events:
        pairs = zip(first.events, other.events, strict=False)
        at = next((a[0] for a, b in pairs if a != b), min(len(first.events), len(other.events)) and -1)
        raise CostError(f"tensors come and go differently at another shape, first at op {first.names[at]}.")


def _refuse_other_names(first: tuple[str, ...], other: tuple[str, ...]) -> None:
    pairs = enumerate(zip(first, other, strict=False))
    at, pair = next(((i, p) for i, p in pairs if p[0] != p[1]), (min(len(first), len(other)), None))
    what = f"{pair[0]} and {pair[1]}" if pair else f"{len(first)} and {len(other)} ops"
    raise CostError(f"the ops of a step change with its shape: op number {at} is {what}. Its cost is no sum of terms.")
