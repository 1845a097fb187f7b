from __future__ import annotations

import threading

import pytest

from labkit.experiments.lineup import EdgesBy
from labkit.widgets.edge_sliders import MAX_BUCKETS, EdgeSliders


@pytest.fixture
def calls():
    return []


@pytest.fixture
def sliders(calls):
    made = EdgeSliders(3, 100, EdgesBy.OPTIMAL, lambda: calls.append(1))
    made.show((5, 20, 100), 100)
    return made


def shown(sliders):
    return [row.value for row in sliders._rows if row.layout.display != "none"]


def test_showing_edges_calls_nobody(sliders, calls):
    assert shown(sliders) == [5, 20, 100]
    assert calls == []


@pytest.mark.parametrize(
    ("row", "wanted", "edges"),
    [
        (1, 50, (5, 50, 100)),
        (1, 3, (5, 6, 100)),  # stops right of its left neighbour
        (0, 70, (19, 20, 100)),  # stops left of its right neighbour
        (2, 1, (5, 20, 21)),
    ],
    ids=["free", "left-neighbour", "right-neighbour", "last"],
)
def test_an_edge_stops_at_its_neighbours(sliders, calls, row, wanted, edges):
    sliders._rows[row].field.value = str(wanted)
    assert sliders.edges == edges
    assert tuple(shown(sliders)) == edges
    assert sliders.edges_by is None  # from now on the user's own
    said = f"{wanted} cannot be taken here: {edges[row]} is the nearest." if edges[row] != wanted else ""
    assert said in sliders._rows[row].problem.value
    assert bool(said) == bool(sliders._rows[row].problem.value)
    assert len(calls) == 1


def test_buttons_and_bucket_count_ask_for_computed_edges(sliders, calls):
    sliders._rows[1].field.value = "30"
    sliders.quantile.click()
    assert sliders.edges_by is EdgesBy.QUANTILE
    sliders._rows[1].field.value = "40"
    sliders.buckets.value = 5
    assert sliders.edges_by is EdgesBy.OPTIMAL
    sliders.optimal.click()
    assert len(calls) == 5


def test_a_number_of_buckets_asked_for_while_edges_are_shown_is_never_lost(sliders, calls):
    asked = threading.Thread(target=lambda: setattr(sliders.buckets, "value", 7))
    sliders._rows[0].observe(lambda _: (asked.start(), asked.join(0.2)), "value")  # in the middle of show
    sliders.take((6, 20, 100))
    sliders.show((6, 20, 100), 100)
    asked.join(5)
    assert (sliders.buckets.value, sliders.edges_by, len(calls)) == (7, EdgesBy.OPTIMAL, 1)


def test_computed_edges_count_at_once_and_are_shown_later(sliders, calls):
    before = shown(sliders)
    sliders.found((7, 100))
    assert (sliders.edges, shown(sliders)) == ((7, 100), before)
    sliders._rows[2].field.value = "90"  # the third is about to go
    assert (sliders.edges, calls) == ((7, 100), [])
    sliders._rows[0].field.value = "9"
    assert (sliders.edges, len(calls)) == ((9, 100), 1)
    sliders.show(sliders.edges, 100)
    assert shown(sliders) == [9, 100]


def test_computed_edges_are_as_many_as_were_set_by_hand_a_moment_ago(sliders, calls):
    sliders.take((5, 20, 50, 60, 100))  # the slider of the number follows when the hand rests
    sliders.optimal.click()
    assert (sliders.buckets.value, sliders.edges_by, len(calls)) == (5, EdgesBy.OPTIMAL, 1)


def test_fewer_and_more_edges_use_the_same_rows(sliders):
    many = tuple(range(1, MAX_BUCKETS + 1))
    sliders.show(many, 100)
    assert tuple(shown(sliders)) == many
    sliders.show((7,), 100)
    assert shown(sliders) == [7]


def test_a_move_while_the_worker_shows_edges_is_never_lost_halfway(sliders):
    stop = threading.Event()

    def worker():
        while not stop.is_set():
            sliders.show((5, 20, 100), 100)

    thread = threading.Thread(target=worker)
    thread.start()
    try:
        for i in range(300):
            sliders._rows[1].field.value = str(30 + i % 40)
    finally:
        stop.set()
        thread.join(10)
    assert tuple(shown(sliders)) == sliders.edges
    sliders._rows[1].field.value = "71"
    assert sliders.edges == (5, 71, 100)
