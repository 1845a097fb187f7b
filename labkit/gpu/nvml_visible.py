"""Which cards a CUDA process sees, and in which order, from ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER``.

Arithmetic on names alone: no library is asked.
Source: CUDA Programming Guide, "CUDA Environment Variables"; MIG User Guide, "Device Enumeration".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_INDEX = re.compile(r"\s*[+-]?\d+")
_MIG_PATH = re.compile(r"MIG-(GPU-[^/]+)/(\d+)/(\d+)")

UNKNOWN_ORDER = (
    "the cards differ and CUDA_DEVICE_ORDER is not PCI_BUS_ID: CUDA counts its fastest first, NVML by PCI bus, so the "
    "numbers of the cards may differ; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name cards by UUID"
)


@dataclass(frozen=True, slots=True)
class Instance:
    """A compute instance of a card in MIG mode.

    Attributes:
        uuid: ``MIG-...``.
        gpu_instance: number of its GPU instance on the card.
        compute_instance: its number in the GPU instance.
    """

    uuid: str
    gpu_instance: int
    compute_instance: int


@dataclass(frozen=True, slots=True)
class Card:
    """A card as NVML lists it, by PCI bus.

    Attributes:
        uuid: ``GPU-...``.
        name: as NVML gives it; None where it does not.
        mig: MIG mode is on: only instances can be used.
        instances: there are; empty without MIG.
    """

    uuid: str
    name: str | None
    mig: bool = False
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A device: a card, or an instance on it, both by position."""

    card: int
    instance: int | None = None


def visible(cards: Sequence[Card], names: str | None) -> tuple[Place, ...]:
    """The devices of a process, in the order in which it counts them.

        cards GPU-aa GPU-bb    None -> both    "1,0" -> bb aa    "1,7,0" -> bb    "" or "-1" -> none    "0,0" -> none

    Args:
        cards: by PCI bus.
        names: ``CUDA_VISIBLE_DEVICES``; None where it is not set.

    Returns:
        Places. An invalid or ambiguous name ends the list, a device named twice empties it. As soon as an instance is
        among them, CUDA takes the first instance and nothing else.
    """
    if names is None:
        return _usable(cards, [Place(card) for card in range(len(cards))])
    places: list[Place] = []
    find = _finder(names)
    for name in names.split(","):
        place = find(cards, name)
        if place is None:
            break
        if place in places:
            return ()
        places.append(place)
    return _usable(cards, places)


def of_uuids(cards: Sequence[Card], uuids: Sequence[str], names: str | None) -> tuple[Place, ...]:
    """The devices that CUDA itself listed, found by UUID.

    Args:
        cards: by PCI bus.
        uuids: with or without ``GPU-`` or ``MIG-``, in CUDA's order.
        names: ``CUDA_VISIBLE_DEVICES``, which tells the instance where CUDA gives the UUID of its card.
    """
    devices = {_bare(card.uuid): Place(i) for i, card in enumerate(cards)}
    devices |= {
        _bare(instance.uuid): Place(i, j) for i, card in enumerate(cards) for j, instance in enumerate(card.instances)
    }
    found = [devices[_bare(uuid)] for uuid in uuids if _bare(uuid) in devices]
    instances = [place for place in visible(cards, names) if place.instance is not None]
    return tuple(
        next((i for i in instances if i.card == place.card), place) if place.instance is None else place
        for place in found
    )


def order_is_known(cards: Sequence[Card], names: str | None, order: str | None) -> bool:
    """True where the numbers of the cards are those that CUDA uses, or are not used.

    Args:
        cards: by PCI bus.
        names: ``CUDA_VISIBLE_DEVICES``.
        order: ``CUDA_DEVICE_ORDER``; CUDA's default is FASTEST_FIRST.
    """
    alike = len({card.name for card in cards}) <= 1 and all(card.name for card in cards)
    by_uuid = names is not None and names.startswith(("GPU-", "MIG-"))
    return len(cards) <= 1 or alike or by_uuid or order == "PCI_BUS_ID"


def _finder(names: str) -> Callable[[Sequence[Card], str], Place | None]:
    """The first name decides for all of them: the kinds cannot be mixed."""
    if names.startswith("MIG-"):
        return _instance_named
    return _card_named if names.startswith("GPU-") else _card_numbered


def _card_numbered(cards: Sequence[Card], name: str) -> Place | None:
    """The leading digits count, as in strtoul: ``1gpu`` is 1."""
    digits = _INDEX.match(name)
    number = int(digits[0]) if digits else -1
    return Place(number) if 0 <= number < len(cards) else None


def _card_named(cards: Sequence[Card], name: str) -> Place | None:
    found = [i for i, card in enumerate(cards) if name.startswith("GPU-") and card.uuid.startswith(name)]
    return Place(found[0]) if len(found) == 1 else None


def _instance_named(cards: Sequence[Card], name: str) -> Place | None:
    """``MIG-<uuid>``, or as before R470 ``MIG-GPU-<uuid of the card>/<GPU instance>/<compute instance>``."""
    path = _MIG_PATH.fullmatch(name)
    found = [
        Place(i, j)
        for i, card in enumerate(cards)
        for j, instance in enumerate(card.instances)
        if (
            (card.uuid, instance.gpu_instance, instance.compute_instance) == (path[1], int(path[2]), int(path[3]))
            if path
            else name.startswith("MIG-") and instance.uuid.startswith(name)
        )
    ]
    return found[0] if len(found) == 1 else None


def _usable(cards: Sequence[Card], places: Sequence[Place]) -> tuple[Place, ...]:
    """A card in MIG mode stands for its first instance, and an instance shuts out everything else."""
    resolved: list[Place] = []
    for place in places:
        card = cards[place.card]
        if place.instance is None and card.mig:
            if card.instances:
                resolved.append(Place(place.card, 0))
        else:
            resolved.append(place)
    first = next((place for place in resolved if place.instance is not None), None)
    return (first,) if first is not None else tuple(resolved)


def _bare(uuid: str) -> str:
    return uuid.removeprefix("GPU-").removeprefix("MIG-").lower()
