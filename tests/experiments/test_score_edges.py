"""The edges of another tool against the best of the same number, by hand and on real lengths."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import EdgesError, PolicyError
from labkit.experiments.score_edges import score_edges, score_report, score_text
from labkit.interchange import EdgeFormat, ForeignEdges
from labkit.interchange.lhotse import parse
from labkit.lengths import presets
from labkit.lengths.histogram import LengthHistogram


def test_by_hand() -> None:
    # 1 2 10 in buckets of 8 and 10: 8 + 8 + 10 = 26 slots for 13 events, half; the best two are 2 and 10: 14 slots
    score = score_edges(LengthHistogram.from_lengths([1, 2, 10]), parse([8, 10], "f"))
    assert (score.given.slots, score.best.slots) == (26, 14)
    assert score.verdict == "your 2 edges waste 50.0%, the best 2 waste 7.1%"  # 1 - 13 / 14
    assert score_text(score).splitlines() == [
        "your 2 edges waste 50.0%, the best 2 waste 7.1% (rows padded to the edge of their bucket)",
        "yours 8, 10: 26 slots",
        "best  2, 10: 14 slots",
    ]


def test_an_open_bucket_counts_as_one_more() -> None:
    score = score_edges(LengthHistogram.from_lengths([1, 2, 10]), parse([8], "f"))
    assert score.given.policy.bucket_edges == (8, 10)
    assert score.above == 0


def test_what_no_bucket_holds_is_named_and_scored_on_neither_side() -> None:
    sizes = ForeignEdges(EdgeFormat.CAPTURE_SIZES, (4, 8))
    score = score_edges(LengthHistogram.from_lengths([3, 4, 5, 20, 20]), sizes)
    assert (score.given.slots, score.given.kept_events, score.above) == (16, 12, 2)
    assert score.above_note == (
        "2 of 5 sequences are above the last edge 8 and not scored: run without a graph and without padding"
    )
    assert score_text(score).endswith(score.above_note)
    assert score_report(score)["sequences_above"] == 2


def test_one_edge_has_a_singular() -> None:
    score = score_edges(LengthHistogram.from_lengths([5, 10]), ForeignEdges(EdgeFormat.LHOTSE, (10,)))
    assert score.verdict == "your 1 edge wastes 25.0%, the best 1 wastes 25.0%"


@pytest.mark.parametrize("name", ["cdnow", "household-lines", "basket-items", "ml-100k"])
def test_edges_of_equal_events_waste_more_than_the_best(name: str) -> None:
    # Lhotse's estimate: a bin starts at each length where the events so far exceed an equal share
    histogram, bins, total = presets.preset(name), [], 0
    for length in histogram.expand().tolist():
        if total > histogram.events / 10:
            bins.append(length)
            total = 0
        total += length
    score = score_edges(histogram, parse(sorted(set(bins)), "f"))
    assert score.best.padding_ratio < score.given.padding_ratio
    assert len(score.best.policy.bucket_edges or ()) == len(score.given.policy.bucket_edges or ())


def test_a_cap_comes_first() -> None:
    score = score_edges(LengthHistogram.from_lengths([1, 2, 100]), parse([8], "f"), max_length=10)
    assert score.given.policy.bucket_edges == (8, 10)
    assert score.histogram.max == 10


def test_the_report_has_both_sides() -> None:
    report = score_report(score_edges(LengthHistogram.from_lengths(np.array([1, 2, 10])), parse([8, 10], "f")))
    assert report["bucket_edges"] == [8, 10]
    assert report["best_bucket_edges"] == [2, 10]
    assert (report["format"], report["batch_sizes"], report["open_end"]) == ("lhotse", None, True)
    assert [s["slots"] for s in report["strategies"]] == [26, 14]


def test_edges_below_every_length_are_refused() -> None:
    with pytest.raises(EdgesError) as caught:
        score_edges(LengthHistogram.from_lengths([9, 12]), ForeignEdges(EdgeFormat.LHOTSE, (4, 8)))
    assert str(caught.value) == "no sequence is within the edges: the last is 8, the shortest length 9."


def test_a_cap_that_is_none_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"^max_length must be 1 or more: got 0\.$"):
        score_edges(LengthHistogram.from_lengths([9]), parse([8], "f"), max_length=0)
