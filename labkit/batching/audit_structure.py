"""The arrays of a plan held against one another, before anything is counted in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.batching import arrange
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Batching

if TYPE_CHECKING:
    from labkit.batching.epoch_plan import EpochPlan

_PER_BATCH = ("rows", "padded_lengths", "batch_slots")
_PACKS = ("pack_offsets", "event_start", "event_stop")


def readable(plan: EpochPlan) -> tuple[EpochPlan, tuple[str, ...]]:
    """A plan that can be counted, and what had to be mended for it.

    Of arrays that do not fit one another what they have in common is kept: batches that all of them have, and in them
    what iterating gives. Pieces without their events keep their places, and count as empty.

    Returns:
        The plan itself and no line for a sound one.
    """
    faults: list[str] = []
    found = _arrays(plan, faults.append)
    _fit_batches(found, faults.append)
    pieces = ("event_start", "event_stop")
    known = all(name in found for name in pieces)
    if plan.policy.spec.batching is Batching.PACKS:
        known = _fit_packs(found, faults.append)
    elif any(name in found for name in _PACKS):
        there = ", ".join(name for name in _PACKS if name in found)
        faults.append(f"{there}: there are no packs in {plan.policy.strategy}.")
        known = False
    if not faults:
        return plan if all(found[name] is getattr(plan, name) for name in found) else replace(plan, **found), ()
    mended = _batches_alone(found, known)
    if not known and plan.policy.spec.batching is Batching.PACKS:
        mended["event_start"] = mended["event_stop"] = np.arange(mended["order"].size)
    none: dict[str, Any] = dict.fromkeys(_PACKS)
    return replace(plan, **(none | mended)), tuple(_of_rank(plan, line) for line in faults)


def _of_rank(plan: EpochPlan, line: str) -> str:
    return line if plan.world_size == 1 else f"rank {plan.rank}: {line}"


def _arrays(plan: EpochPlan, fault: Callable[[str], None]) -> dict[str, Any]:
    """The arrays by name, whole numbers in one dimension; empty where they are not."""
    found = {}
    for name in ("order", "batch_offsets", *_PER_BATCH, *_PACKS):
        given = getattr(plan, name)
        if given is None and name in _PACKS:
            continue
        array = np.asarray(given)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            fault(f"{name} is no list of whole numbers: it has {array.ndim} dimensions of {array.dtype}.")
            array = np.zeros(0, dtype=np.int64)
        found[name] = array.astype(np.int64, copy=False)
    return found


def _fit_batches(found: dict[str, Any], fault: Callable[[str], None]) -> None:
    offsets = found["batch_offsets"]
    _check_offsets("batch_offsets", offsets, found["order"].size, fault)
    for name in _PER_BATCH:
        if found[name].size != max(offsets.size - 1, 0):
            fault(f"{name} has {found[name].size} numbers for the {max(offsets.size - 1, 0)} batches of batch_offsets.")


def _fit_packs(found: dict[str, Any], fault: Callable[[str], None]) -> bool:
    """Whether the events of each piece are known."""
    places, known = found["order"].size, True
    for name in _PACKS:
        if name not in found:
            fault(f"{name} is missing: packed needs it.")
            known = known and name == "pack_offsets"
        elif name == "pack_offsets":
            _check_offsets(name, found[name], places, fault)
        elif found[name].size != places:
            fault(f"{name} has {found[name].size} numbers for {places} pieces in order.")
            known = False
    return known


def _check_offsets(name: str, offsets: NDArray[np.int64], places: int, fault: Callable[[str], None]) -> None:
    if not offsets.size:
        fault(f"{name} is empty: it begins with 0.")
        return
    if offsets[0] != 0:
        fault(f"{name} begins at {offsets[0]}, not at 0.")
    if offsets[-1] != places:
        fault(f"{name} ends at {offsets[-1]}, order has {places} places.")
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        i = int(np.argmax(falls))
        fault(f"{name} decreases from {offsets[i]} to {offsets[i + 1]} at position {i + 1}.")


def _batches_alone(found: dict[str, Any], known: bool) -> dict[str, Any]:
    """The batches that every array has, and the places in them."""
    many = min(max(found["batch_offsets"].size - 1, 0), *(found[name].size for name in _PER_BATCH))
    offsets = np.clip(found["batch_offsets"][: many + 1], 0, found["order"].size)
    low = offsets[:-1]
    high = np.maximum(offsets[1:], low)
    kept = {name: found[name][:many] for name in _PER_BATCH}
    kept["batch_offsets"] = np.concatenate((np.zeros(1, np.int64), np.cumsum(high - low)))
    for name in ("order", "event_start", "event_stop") if known else ("order",):
        if name in found:
            kept[name] = arrange.gather(found[name], low, high)
    return kept


def wrong_ranks(plans: list[EpochPlan]) -> list[str]:
    """Ranks that do not exist, and figures of another number of ranks."""
    found = []
    for plan in plans:
        if not 0 <= plan.rank < plan.world_size:
            found.append(f"rank {plan.rank} does not exist: there are {plan.world_size} ranks, 0 is the first.")
        said = plan.all_ranks.world_size
        if said != plan.world_size:
            found.append(f"the figures of all ranks are of {said}, the plan is one of {plan.world_size}.")
    return found


def capacity_in(policy: BatchPolicy, longest: int) -> int:
    """Most events of a pack: the capacity of the policy, or the longest length after the cap, at least 1."""
    if policy.capacity is not None:
        return policy.capacity
    return max(1, longest if policy.max_length is None else min(policy.max_length, longest))
