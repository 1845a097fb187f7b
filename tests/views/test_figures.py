from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.strategies import Strategy
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import score
from labkit.lengths.histogram import LengthHistogram
from labkit.views.dataset_summary import Summary
from labkit.views.histogram_figure import axis, bars, edge_marks, histogram_figure
from labkit.views.notebook_figure import NotebookFigure
from labkit.views.ranking_figure import ranking_data, ranking_figure

LENGTHS = LengthHistogram.from_lengths(np.array([0, 1, 1, 2, 30, 500]))


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=60))
def test_area_of_the_bars_is_the_share_of_sequences_that_are_not_empty(lengths):
    h = LengthHistogram.from_lengths(np.array(lengths))
    b = bars(h)
    filled = sum(1 for n in lengths if n > 0) / len(lengths)
    assert float((b.sequences * b.widths).sum()) == pytest.approx(filled, abs=1e-5)
    events = 1.0 if h.events else 0.0
    assert float((b.events * b.widths).sum()) == pytest.approx(events, abs=1e-5)
    assert len(b.hover) == b.centers.size


def test_an_edge_is_drawn_right_of_the_lengths_it_holds():
    # upper-inclusive: the line of edge 2 lies between the bars of 2 and 3
    b, line = bars(LENGTHS), edge_marks((2, 500))["shapes"][1]["x0"]
    left = b.centers - b.widths / 2
    assert np.log2(2) < line < np.log2(3)
    assert np.isclose(left, line, atol=1e-6).any()


def test_every_edge_has_a_line_and_its_number_and_the_cap_is_named():
    marks = edge_marks((1, 4, 500), max_length=100)
    assert [s["type"] for s in marks["shapes"]].count("line") == 4
    assert [a["text"] for a in marks["annotations"]] == ["<b>1</b>", "<b>4</b>", "<b>500</b>", "<b>cap 100</b>"]


def test_axis_reaches_from_the_shortest_length_or_edge_to_the_longest():
    low, high = axis(LENGTHS, (1000,))["range"]
    assert low < 0 < np.log2(1000) < high
    assert axis(LENGTHS)["ticktext"][-1] == "500"
    assert axis(LengthHistogram.from_lengths([0, 0]))["ticktext"] == ["1"]


def test_ranking_puts_the_least_work_per_event_on_top_and_leaves_out_what_does_not_fit():
    board = score(LENGTHS, Lineup(token_budget=400, rows=2))
    data = ranking_data(board.scores)
    shown = [s.strategy for s in board.scores if s.what_if is not None]
    assert sorted(data["y"]) == sorted(str(s) for s in shown)
    assert Strategy.BUCKET_BUDGET not in shown  # width 500 is above the budget
    assert data["padding"] == sorted(data["padding"], reverse=True)
    assert all(u + p == pytest.approx(1) for u, p in zip(data["useful"], data["padding"], strict=True))


def test_ranking_says_in_words_what_is_lost():
    data = ranking_data(score(LENGTHS, Lineup(max_length=30), [Strategy.PAD_RECENT]).scores)
    assert "−88.0 % events" in data["text"][0]  # 470 of 534


def test_figures_display_offline_and_without_an_upload_button():
    shown = NotebookFigure(histogram_figure(LENGTHS, (2, 500)), "lengths")._repr_mimebundle_()
    assert set(shown) == {"application/vnd.plotly.v1+json", "text/plain"}
    assert shown["application/vnd.plotly.v1+json"]["config"]["showSendToCloud"] is False
    page = NotebookFigure(ranking_figure(()), "ranking").html(with_library=False)
    assert "cdn" not in page


def test_summary_counts_empty_sequences_and_escapes_the_name():
    html = Summary(LENGTHS, "<b>")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "empty" in html
    large = repr(Summary(LengthHistogram.from_lengths([3, 3, 10**9]), "large"))
    assert "mean 333 M · P50 3 · P95 900 M · P99 980 M · longest 1.00 G" in large
    assert repr(Summary(LENGTHS, "mine")).startswith("mine: sequences 6 · events 534 · mean 89.0 · P50 1.5")
