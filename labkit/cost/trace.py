"""One trace of a step: what each op costs and which tensors live, on meta tensors, without computing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils.flop_counter import flop_registry

from labkit.cost.allocations import AllocationTrace, Event, as_without_modes, storages_of, tensors_in
from labkit.cost.kernel_costs import KERNEL_COSTS
from labkit.cost.op_costs import Call, OpCost, Operand, cost_of
from labkit.cost.step_cost import Traced


class Phase(StrEnum):
    """Part of a step."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True)
class TracedOp:
    """One op of a step.

    Attributes:
        name: such as ``aten.mm.default``.
        phase: when it ran.
        cost: operations, bytes, kernels. A view costs nothing on the device.
    """

    name: str
    phase: Phase
    cost: OpCost


@dataclass(frozen=True, slots=True)
class StepTrace:
    """A step, op by op.

    Attributes:
        ops: in the order they ran, those of the host alone (views, allocations) included.
        sizes: bytes of each storage.
        events: which storage came or went at which op, as numbers of ``ops``; -1: held from the start.
    """

    ops: tuple[TracedOp, ...]
    sizes: tuple[int, ...]
    events: tuple[Event, ...]

    def traced(self) -> Traced:
        """What a fit needs of it."""
        return Traced(
            names=tuple(f"{op.phase} {op.name}" for op in self.ops),
            costs=tuple(op.cost for op in self.ops),
            sizes=self.sizes,
            events=tuple((event.op, event.storage, -1 if event.freed else 1) for event in self.events),
        )


def trace_step(
    forward: Callable[[], Tensor],
    *,
    optimizer: Callable[[], object] | None = None,
    backward: bool = True,
    held: Iterable[Tensor] = (),
    device: str = "meta",
) -> StepTrace:
    """Trace one step.

    Args:
        forward: makes the loss, or the output where there is no backward pass.
        optimizer: what follows the backward pass: the update, and setting gradients to None.
        backward: the loss is differentiated.
        held: tensors that are there before the step and all through it: parameters, state of the optimizer, batch.
        device: type of the device that the step runs on; ops with no tensor there cost nothing on it.

    Returns:
        Costs and allocations. Traced on ``meta`` nothing is computed, and the figures are those of any device whose
        backend runs the same ops.

    Raises:
        CostError: an op that no cost rule covers.

    Cost: some 50 microseconds an op.
    """
    ops = _OpTrace(device)
    with AllocationTrace() as allocations, ops:
        allocations.hold(held)
        with ops.in_phase(Phase.FORWARD):
            result = forward()
        if backward:
            with ops.in_phase(Phase.BACKWARD):
                result.backward()  # type: ignore[no-untyped-call]
        del result
        if optimizer is not None:
            with ops.in_phase(Phase.OPTIMIZER):
                optimizer()
    # the first "op" of the allocations is what was held
    events = tuple(event._replace(op=event.op - 1) for event in allocations.events)
    return StepTrace(tuple(ops.found), tuple(allocations.sizes), events)


class _OpTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's __init_subclass__ has no types
    """Writes down what each op costs."""

    def __init__(self, device: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self.found: list[TracedOp] = []
        self._phase = Phase.FORWARD
        self._fresh: set[int] = set()  # storages that the last kernel wrote

    @contextmanager
    def in_phase(self, phase: Phase) -> Iterator[None]:
        self._phase = phase
        yield

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if any(is_traceable_wrapper_subclass(t) for t in tensors_in((args, kwargs))):
            return NotImplemented
        func = as_without_modes(func, args)
        result = func(*args, **kwargs)
        cost = _cost(func, args, kwargs, result, self._device)
        if cost.kernels:
            cost = cost._replace(fresh_bytes=self._fresh_bytes((args, kwargs)))
            written = _changed(func, args, kwargs) or tensors_in(result)
            self._fresh = {storage._cdata for tensor in written for storage in storages_of(tensor)}
        self.found.append(TracedOp(str(func), self._phase, cost))
        return result

    def _fresh_bytes(self, given: Any) -> int:
        """Bytes of the operands that the last kernel wrote."""
        fresh = (t for t in _distinct(tensors_in(given)) if self._fresh & {s._cdata for s in storages_of(t)})
        return sum(_operand(tensor).bytes for tensor in fresh)


def _cost(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, device: str) -> OpCost:
    given = list(tensors_in((args, kwargs)))
    changed = _changed(func, args, kwargs)
    returned = list(tensors_in(result))
    if all(tensor.device.type != device for tensor in (*given, *returned)):
        return OpCost(0, 0, 0, 0)  # the host's own arithmetic, such as the count of steps of an optimizer
    if not changed and _only_views(returned, given):
        return OpCost(0, 0, 0, 0)
    formula = flop_registry.get(func._overloadpacket)
    call = Call(
        func._schema.name.split("::")[-1],
        tuple(map(_operand, _distinct(given))),
        tuple(map(_operand, _distinct(changed or returned))),
        frozenset(tag.name for tag in func.tags),
        None if formula is None else int(formula(*args, **kwargs, out_val=result)),
        tuple(a for a in args if type(a) is int),
    )
    return KERNEL_COSTS.get(call.name, cost_of)(call)


def _changed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Tensors that the op writes to in place, by its schema."""
    found: list[Tensor] = []
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            found += tensors_in(value)
    return found


def _only_views(returned: Sequence[Tensor], given: Sequence[Tensor]) -> bool:
    inside = {storage._cdata for tensor in given for storage in storages_of(tensor)}
    return bool(returned) and all(s._cdata in inside for tensor in returned for s in storages_of(tensor))


def _distinct(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Without those that are given twice."""
    return list({_place(tensor): tensor for tensor in tensors}.values())


def _place(tensor: Tensor) -> tuple[Any, ...]:
    storages = tuple(storage._cdata for storage in storages_of(tensor))
    return (storages, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def _operand(tensor: Tensor) -> Operand:
    sizes = tuple(tensor.shape)
    distinct = 1
    for size, stride in zip(sizes, tensor.stride(), strict=True):
        distinct *= size if stride or not size else 1
    return Operand(sizes, tensor.element_size(), distinct)
