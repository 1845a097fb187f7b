"""Row costs and charges: their formulas by hand, what is refused, and the text of the command line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching import costs
from labkit.batching.edge_charges import charge_of_capture, charge_of_memory
from labkit.batching.edges import optimal_edges
from labkit.errors import EdgesError, PolicyError
from labkit.lengths.histogram import LengthHistogram

WIDTHS = np.array([1, 8, 9, 100])


def test_each_cost_is_its_formula() -> None:
    assert costs.slots(WIDTHS).tolist() == [1, 8, 9, 100]
    assert costs.attention(0.5)(WIDTHS).tolist() == [1.5, 40.0, 49.5, 5100.0]  # 8 + 64 / 2, 9 + 81 / 2, 100 + 5000
    assert costs.tiled(8)(WIDTHS).tolist() == [8, 8, 16, 104]
    assert costs.table([8, 16, 116], [1.0, 3.0, 13.0])(WIDTHS).tolist() == [1.0, 1.0, 1.25, 11.4]  # 3 + 84 / 100 * 10


def test_costs_are_values_that_can_be_compared() -> None:
    assert costs.attention(0.5) == costs.attention(0.5) != costs.attention(0.25)
    assert costs.tiled(8) == costs.tiled(8)
    assert costs.table([1], [2]) == costs.table([1], [2.0])


def test_attention_moves_edges_towards_the_long_rows() -> None:
    # 1 2 3 once each, two buckets. Slots: (1, 3) 1 + 6 = 7, (2, 3) 4 + 3 = 7, the first wins.
    # L + L^2 = 2 6 12: (1, 3) 2 + 24 = 26, (2, 3) 12 + 12 = 24
    histogram = LengthHistogram.from_lengths([1, 2, 3])
    assert optimal_edges(histogram, 2, cost=costs.slots).edges == (1, 3)
    found = optimal_edges(histogram, 2, cost=costs.attention(1))
    assert (found.edges, found.cost) == ((2, 3), 24)


def test_a_tile_is_no_wider_bucket() -> None:
    # tiles of 8: 1 .. 8 cost the same, so one edge serves them all
    assert optimal_edges(LengthHistogram.from_lengths(range(1, 17)), 4, cost=costs.tiled(8)).edges == (8, 16)


def test_a_table_decides_with_measured_prices() -> None:
    # flat up to 4, steep above: 1 2 3 4 share a bucket, 5 and 6 have their own
    table = costs.table([4, 5, 6], [1.0, 5.0, 9.0])
    assert optimal_edges(LengthHistogram.from_lengths([1, 2, 3, 4, 5, 6]), 3, cost=table).edges == (4, 5, 6)


def test_a_table_that_ends_too_early_is_refused() -> None:
    with pytest.raises(EdgesError) as caught:
        optimal_edges(LengthHistogram.from_lengths([1, 9]), 2, cost=costs.table([1, 4], [1, 2]))
    assert str(caught.value) == (
        "the table of prices ends at length 4, and rows are up to 9 wide: measure longer rows, or set max_length."
    )


@pytest.mark.parametrize(
    ("lengths", "prices", "message"),
    [
        ([], [], "a table needs one price a length: got shape (0,) for 0 lengths."),
        ([1, 2], [1.0], "a table needs one price a length: got shape (1,) for 2 lengths."),
        ([2, 2], [1, 1], "lengths of a table must be strictly increasing: 2 follows 2. Sort them."),
        ([3, 2], [1, 1], "lengths of a table must be strictly increasing: 2 follows 3. Sort them."),
        ([1, 2], [1, -1], "prices[1] must be a finite number of 0 or more: got -1."),
        ([1, 2], [1, float("nan")], "prices[1] must be a finite number of 0 or more: got nan."),
        (
            [1, 64, 96],
            [1, 5.1, 4.9],
            "prices must not decrease: 5.1 at length 64, 4.9 at 96. Measure again, or pass smooth=True.",
        ),
    ],
    ids=str,
)
def test_a_table_that_is_none_is_refused(lengths: list[int], prices: list[float], message: str) -> None:
    with pytest.raises(EdgesError) as caught:
        costs.table(lengths, prices)
    assert str(caught.value) == message


def test_smoothing_pools_what_decreases() -> None:
    # 5 and 4 become 4.5; then 6, 3, 3 become 4, which is below 4.5: all five (5 + 4 + 6 + 3 + 3) / 5 = 4.2
    assert costs.table([1, 2, 3], [1, 5, 4], smooth=True).prices == (1.0, 4.5, 4.5)
    assert costs.table(range(1, 7), [1, 5, 4, 6, 3, 3], smooth=True).prices == pytest.approx((1.0, *[4.2] * 5))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_smoothed_prices_never_decrease_and_keep_their_sum(prices: list[float]) -> None:
    smooth = costs._pooled(prices)
    assert all(a <= b for a, b in pairwise(smooth))
    assert sum(smooth) == pytest.approx(sum(prices))


@pytest.mark.parametrize("alpha", [-1, float("inf"), float("nan")])
def test_an_alpha_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(EdgesError, match=r"^alpha must be a finite number of 0 or more: got "):
        costs.attention(alpha)


def test_a_tile_that_is_none_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"^multiple must be 1 or more: got 0\.$"):
        costs.tiled(0)


@pytest.mark.parametrize(
    ("text", "cost"),
    [("slots", costs.slots), ("attention", costs.attention(1 / 384)), ("attention:0.25", costs.attention(0.25))],
)
def test_a_cost_has_a_name(text: str, cost: object) -> None:
    assert costs.parse_cost(text) == cost


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flops", "edge cost 'flops' does not exist: use slots, attention or attention:ALPHA."),
        ("slots:2", "edge cost 'slots:2' does not exist: use slots, attention or attention:ALPHA."),
        (
            "attention:x",
            "edge cost 'attention:x' has no alpha of 0 or more: write attention:0.01, for example.",
        ),
        (
            "attention:-1",
            "edge cost 'attention:-1' has no alpha of 0 or more: write attention:0.01, for example.",
        ),
        ("attention:", "edge cost 'attention:' has no alpha of 0 or more: write attention:0.01, for example."),
    ],
)
def test_a_name_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(EdgesError) as caught:
        costs.parse_cost(text)
    assert str(caught.value) == message


# --- charges


def test_a_capture_costs_the_slots_that_would_be_computed_meanwhile() -> None:
    assert charge_of_capture(0.5, 1e6) == 500_000
    assert charge_of_capture(0.5, 1e6, epochs=10) == 50_000


def test_memory_is_traded_at_par_with_slots() -> None:
    assert charge_of_memory(2e9, 80e9, 1_000_000) == 25_000  # 2.5 % of the device for 2.5 % of the slots


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: charge_of_capture(-1, 1), "capture_s must be a finite number of 0 or more: got -1."),
        (lambda: charge_of_capture(1, 1, epochs=0), "epochs must be above 0: got 0."),
        (lambda: charge_of_memory(1, 0, 1), "device_bytes must be above 0: got 0."),
        (lambda: charge_of_memory(1, 1, "x"), "slots_per_epoch must be a number: got 'x' (str)."),
        (lambda: charge_of_memory(True, 1, 1), "graph_bytes must be a number: got True (bool)."),
    ],
)
def test_a_measure_that_is_none_is_refused(call: object, message: str) -> None:
    with pytest.raises(EdgesError) as caught:
        call()  # type: ignore[operator]
    assert str(caught.value) == message
