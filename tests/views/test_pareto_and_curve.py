from __future__ import annotations

import itertools
from typing import Any

import pytest

from labkit.experiments.lineup import Lineup
from labkit.experiments.optimum import OptimumCache
from labkit.experiments.scores import score
from labkit.lengths.presets import preset
from labkit.views.curve_figure import curve_data, curve_figure
from labkit.views.label_places import Place
from labkit.views.pareto_figure import pareto_data, pareto_figure, plot_size
from labkit.widgets.live_figures import LiveFigures

LENGTHS = preset("ml-100k")


def test_the_front_is_filled_and_what_is_beaten_in_all_three_is_a_ring() -> None:
    data = pareto_data(score(LENGTHS, Lineup()).scores)
    marks = dict(zip([h.split(":")[0] for h in data["hover"]], data["symbol"], strict=True))
    # pad_max pads more than pad_batch, in as many batches, the largest as large
    assert marks["pad_max"] == "circle-open"
    assert marks["packed"] == marks["jagged"] == "circle"
    labels = [label["text"].replace("<br>", " ") for label in data["labels"]]
    assert "jagged, segmented, sparse" in labels
    assert sorted(", ".join(labels).split(", ")) == sorted(marks)  # none without its name
    assert max(data["size"]) == 34
    assert pareto_figure(data).data[0].x == tuple(data["x"])


def test_without_strategies_there_is_nothing_to_draw() -> None:
    assert pareto_data(())["x"] == pareto_data(())["labels"] == []


@pytest.mark.parametrize(
    ("lengths", "lineup"),
    [
        ("ml-100k", Lineup()),
        ("ml-100k", Lineup(buckets=16)),
        ("ml-100k", Lineup(max_length=200)),
        ("ml-100k", Lineup(buckets=1)),
        ("cdnow", Lineup(token_budget=100_000)),
        ("industrial_20m", Lineup()),
    ],
)
def test_labels_of_the_strategies_lie_apart_and_inside_at_every_width(lengths: str, lineup: Lineup) -> None:
    data = pareto_data(score(preset(lengths), lineup).scores)
    named = {name for label in data["labels"] for name in label["text"].replace("<br>", " ").split(", ")}
    assert named == {hover.split(":")[0] for hover in data["hover"]}
    for figure_width in (300, 450, 600, 1200):
        width, height = plot_size(figure_width)
        boxes = [box(label, data, width, height) for label in data["labels"]]
        assert [(a.text, b.text) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)] == []
        for b in boxes:
            assert b.width / 2 - 0.01 <= b.x <= width - b.width / 2 + 0.01
            assert b.height / 2 - 0.01 <= b.y <= height - b.height / 2 + 0.01


def box(label: dict[str, Any], data: dict[str, Any], width: float, height: float) -> Place:
    """A label as it stands in a plot of this size, its letters 6 pixels wide and its lines 13 high."""
    low, high = data["range"]
    bottom, top = pareto_figure(data).layout.yaxis.range
    lines = label["text"].split("<br>")
    x, y = width * (label["ax"] - low) / (high - low), height * (top - label["ay"]) / (top - bottom)
    return Place(label["text"], x, y, 6.0 * max(map(len, lines)), 13.0 * len(lines))


def test_the_axis_has_numbers_and_a_legend_says_what_filled_and_hollow_mean() -> None:
    data = pareto_data(score(preset("ml-100k"), Lineup()).scores)
    assert data["ticks"] == [1, 2, 5, 10]
    figure = pareto_figure(data)
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == [
        "on the Pareto front", "dominated",
    ]  # fmt: skip
    assert len(figure.layout.annotations) == len(data["labels"])


def test_a_refused_policy_is_said_instead_of_a_curve() -> None:
    refused = curve_data((), 0, 3, None, "longest length 737 > last bucket edge 500: <b> raise it")
    assert refused["said"].startswith("No curve:<br>longest length 737 &gt; last bucket")
    assert "&lt;b&gt;" in refused["said"]
    assert max(map(len, refused["said"].split("<br>"))) <= 36 + len("&lt;&gt;")
    figure = curve_figure(refused)
    assert figure.layout.annotations[0].text == refused["said"]
    assert curve_data((200, 125), 100, 2, 160)["said"] == ""


def test_the_live_figure_says_why_there_is_no_curve_and_takes_it_back() -> None:
    shown = LiveFigures()
    lineup = Lineup(bucket_edges=(100, 500))
    shown.draw(score(LENGTHS, lineup), None)
    assert not shown.curve.layout.yaxis.visible  # its lines would go through the text
    assert "longest length 737" in shown.curve.layout.annotations[0].text.replace("<br>", " ")
    lineup = Lineup(bucket_edges=(100, 737))
    shown.draw(score(LENGTHS, lineup), OptimumCache().best(LENGTHS, lineup, 2))
    assert shown.curve.layout.annotations[0].text == ""
    assert shown.curve.layout.yaxis.visible
    assert len(shown.pareto.layout.annotations) == len(pareto_data(score(LENGTHS, lineup).scores)["labels"])
    shown.curve.close()
    shown.pareto.close()


def test_the_curve_says_padding_the_elbow_and_where_one_is() -> None:
    data = curve_data((200, 125, 110, 105), 100, 2, 160)
    assert data["y"] == pytest.approx([0.5, 0.2, 1 - 100 / 110, 1 - 100 / 105])
    assert (data["elbow_x"], data["elbow_y"]) == ([2], [data["y"][1]])
    assert (data["here_x"], data["here_y"]) == ([2], [1 - 100 / 160])
    assert curve_figure(data).data[2].y == (1 - 100 / 160,)
    nothing = curve_data((), 0, 3, None)
    assert nothing["elbow_x"] == nothing["here_x"] == []
