"""Peak and live bytes of tensor allocations, followed storage by storage, on any device: CPU, CUDA or meta."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

#: Name of the op that "allocates" what was there before.
HELD = "held"


class Event(NamedTuple):
    """A storage comes or goes.

    Attributes:
        op: number of the op, in ``AllocationTrace.ops``, during which it came or after which it went.
        storage: number of the storage, in ``AllocationTrace.sizes``.
        freed: it went.
    """

    op: int
    storage: int
    freed: bool


class AllocationTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's __init_subclass__ has no types
    """Follows the storages of all tensors that ops return, while it is entered.

        with AllocationTrace() as trace:
            trace.hold(model.parameters())
            model.loss(batch).mean.backward()
        trace.peak_bytes, trace.peak_op

    A storage counts once, however many tensors are views of it, from the op that returned it until the last of them is
    gone. What existed before counts only when it is held. Scratch memory that an op gives back before it returns is not
    seen: the figures are those of the tensors.

    Args:
        rounding: each storage takes a multiple of so many bytes: 512 on CUDA (``CUDA_BLOCK_BYTES``).

    Attributes:
        ops: names of the ops in the order they ran, such as ``aten.mm.default``.
        sizes: bytes of each storage, before rounding.
        events: what came and went.
        live_bytes: bytes that are there now, rounded.
        peak_bytes: the most that were there at one time.
        peak_op: the op during which that was so; None before the first allocation.

    Cost: some ten microseconds an op. Which device the tensors are on does not matter: on ``meta`` the same step gives
        the same figures without computing anything.
    """

    def __init__(self, *, rounding: int = 1) -> None:
        """Start with nothing held."""
        super().__init__()  # type: ignore[no-untyped-call]
        _counts_of_an_only_reference()  # once, before this mode is on
        self.ops: list[str] = []
        self.sizes: list[int] = []
        self.events: list[Event] = []
        self.live_bytes = 0
        self.peak_bytes = 0
        self.peak_op: str | None = None
        self._rounding = rounding
        # address of a storage that is alive -> its number, and what tells of its end
        self._alive: dict[int, tuple[int, weakref.ref[torch.UntypedStorage]]] = {}

    def hold(self, tensors: Iterable[Tensor]) -> None:
        """Count tensors that exist already, such as parameters and the batch."""
        self.ops.append(HELD)
        self._add(tensors)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one op and look at what it returns."""
        if any(is_traceable_wrapper_subclass(t) for t in tensors_in((args, kwargs))):
            return NotImplemented  # the subclass unpacks itself first; the ops on its parts come here
        func = as_without_modes(func, args)
        self.ops.append(str(func))
        result = func(*args, **(kwargs or {}))
        given = {storage._cdata for t in tensors_in((args, kwargs)) for storage in storages_of(t)}
        self._add(tensors_in(result), given)
        return result

    def _add(self, tensors: Iterable[Tensor], given: Iterable[int] = ()) -> None:
        """Count the storages of tensors, but for those that an op was given and that nobody held."""
        for tensor in tensors:
            for storage in storages_of(tensor):
                key, size = storage._cdata, storage.nbytes()
                if key in self._alive:
                    number, _ = self._alive[key]
                    if self.sizes[number] == size:
                        continue
                    self._free(key, number)  # resized in place
                elif key in given:
                    continue
                self._allocate(key, storage, size)

    def _allocate(self, key: int, storage: torch.UntypedStorage, size: int) -> None:
        number = len(self.sizes)
        self._alive[key] = number, weakref.ref(storage, lambda _: self._free(key, number))
        self.sizes.append(size)
        self.events.append(Event(len(self.ops) - 1, number, freed=False))
        self.live_bytes += self._rounded(size)
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_op = self.live_bytes, self.ops[-1]

    def _free(self, key: int, number: int) -> None:
        known = self._alive.get(key)
        if known is None or known[0] != number:
            return  # resized before, or another storage at the same address
        del self._alive[key]
        self.events.append(Event(len(self.ops) - 1, number, freed=True))
        self.live_bytes -= self._rounded(self.sizes[number])

    def _rounded(self, size: int) -> int:
        return -(-size // self._rounding) * self._rounding


class _Counts(NamedTuple):
    tensor: int
    storage: int


def as_without_modes(func: Any, args: tuple[Any, ...]) -> Any:
    """The op that autograd would have called if no dispatch mode looked on.

    Gradients of a tensor that is used several times are added up. Autograd does that in place where nothing else holds
    the first one, but not while any dispatch mode is on, so that a trace would see one more tensor than there is: in a
    model that looks two ids up in one table, a whole table. This gives the op in place back.

    Source: PyTorch, torch/csrc/autograd/input_buffer.cpp, ``can_accumulate_inplace``.
    """
    if func is not torch.ops.aten.add.Tensor or torch._C._current_autograd_node() is None:
        return func
    first, second = args
    if not isinstance(second, Tensor) or first.shape != second.shape or first.dtype != second.dtype:
        return func
    alone, found = _counts_of_an_only_reference(), _counts(first)
    is_alone = found.tensor <= alone.tensor and found.storage <= alone.storage and first.is_contiguous()
    return torch.ops.aten.add_.Tensor if is_alone else func


def _counts(tensor: Tensor) -> _Counts:
    """How many hold a tensor, and how many its storage, this look at them included."""
    storage = tensor.untyped_storage()
    return _Counts(tensor._use_count(), torch._C._storage_Use_Count(storage._cdata))  # type: ignore[attr-defined]


@cache
def _counts_of_an_only_reference() -> _Counts:
    """What ``_counts`` finds inside a dispatch mode, where autograd alone holds a gradient: seen in a tiny example."""
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        twice = x * 2
        loss = (twice * 3 + twice * 4).sum()
        with _Look() as look:
            loss.backward()  # type: ignore[no-untyped-call]
    seen: _Counts = look.seen[0]
    return seen


class _Look(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's __init_subclass__ has no types
    """Counts references to the first of two gradients that are added."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[_Counts] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten.add.Tensor:
            self.seen.append(_counts(args[0]))
        return func(*args, **(kwargs or {}))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)


def storages_of(tensor: Tensor) -> tuple[torch.UntypedStorage, ...]:
    """The storages that a tensor lives in: one, or those of the parts of a sparse or nested one."""
    subclass: Any = tensor
    if is_traceable_wrapper_subclass(subclass):
        names, _ = subclass.__tensor_flatten__()
        return tuple(s for name in names for s in storages_of(getattr(tensor, name)))
    parts: tuple[Tensor, ...]
    match tensor.layout:
        case torch.strided:
            return (tensor.untyped_storage(),)
        case torch.sparse_coo:
            parts = (tensor._indices(), tensor._values())
        case torch.sparse_csr | torch.sparse_bsr:
            parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
        case torch.sparse_csc | torch.sparse_bsc:
            parts = (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
        case other:
            raise NotImplementedError(f"the storages of layout {other} are not known: extend storages_of")
    return tuple(part.untyped_storage() for part in parts)
