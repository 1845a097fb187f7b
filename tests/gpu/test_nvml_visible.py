"""Which cards a process sees: the rules of CUDA_VISIBLE_DEVICES, on two cards and on one in MIG mode."""

from __future__ import annotations

import pytest

from labkit.gpu.nvml_visible import Card, Instance, Place, of_uuids, order_is_known, visible

CARDS = (Card("GPU-aa01", "H100"), Card("GPU-aa02", "H100"), Card("GPU-bb00", "H100"))
MIG = (
    Card("GPU-aa", "H100", True, (Instance("MIG-c1", 5, 0), Instance("MIG-c2", 6, 0))),
    Card("GPU-bb", "H100"),
    Card("GPU-cc", "H100", True),
)


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        (" 2, 0", [2, 0]),
        ("1gpu,0", [1, 0]),  # as strtoul reads it
        ("0,2,-1,1", [0, 2]),  # NVIDIA's own example: what follows an invalid entry does not count
        ("0,7,1", [0]),
        ("0,,1", [0]),
        ("0,0", []),  # named twice: none
        ("1,2,1", []),
        ("GPU-bb", [2]),
        ("GPU-bb00,GPU-aa01", [2, 0]),
        ("GPU-aa", []),  # two cards begin so
        ("GPU-bb,GPU-aa", [2]),
        ("GPU-bb,0", [2]),  # kinds are not mixed
        ("0,GPU-bb", [0]),
        ("GPU-bb,GPU-bb00", []),
        ("MIG-c1", []),
    ],
)
def test_the_cards_that_a_process_sees(names: str | None, seen: list[int]) -> None:
    assert visible(CARDS, names) == tuple(Place(card) for card in seen)


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        (None, (Place(0, 0),)),  # an instance shuts out whole cards
        ("0", (Place(0, 0),)),
        ("1", (Place(1),)),
        ("1,0", (Place(0, 0),)),
        ("2,1", (Place(1),)),  # MIG mode without instances: nothing to run on
        ("MIG-c2", (Place(0, 1),)),
        ("MIG-c2,MIG-c1", (Place(0, 1),)),  # one instance a process
        ("MIG-c", ()),
        ("MIG-GPU-aa/6/0", (Place(0, 1),)),
        ("MIG-GPU-aa/7/0", ()),
        ("GPU-aa", (Place(0, 0),)),
    ],
)
def test_instances_of_cards_in_mig_mode(names: str | None, seen: tuple[Place, ...]) -> None:
    assert visible(MIG, names) == seen


def test_cuda_says_itself_which_devices_it_has() -> None:
    # torch gives them without "GPU-", in CUDA's order, which CUDA_VISIBLE_DEVICES has shaped already
    assert of_uuids(CARDS, ["BB00", "aa01"], "2,0") == (Place(2), Place(0))
    assert of_uuids(MIG, ["c2"], None) == (Place(0, 1),)
    assert of_uuids(MIG, ["aa"], "MIG-c2") == (Place(0, 1),)
    assert of_uuids(CARDS, ["ff"], None) == ()


@pytest.mark.parametrize(
    ("names", "order", "known"),
    [
        (None, None, False),
        ("1", "FASTEST_FIRST", False),
        ("1", "PCI_BUS_ID", True),
        ("GPU-t4", None, True),
    ],
)
def test_the_order_of_different_cards_is_known_only_by_bus_or_by_uuid(
    names: str | None, order: str | None, known: bool
) -> None:
    assert order_is_known((Card("GPU-t4", "T4"), Card("GPU-h1", "H100")), names, order) is known


def test_the_order_of_equal_cards_is_known() -> None:
    assert order_is_known(CARDS, None, None)
    assert not order_is_known((Card("GPU-1", None), Card("GPU-2", None)), None, None)
