from __future__ import annotations

import pytest

from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import score
from labkit.lengths.presets import preset
from labkit.views.curve_figure import curve_data, curve_figure
from labkit.views.pareto_figure import pareto_data, pareto_figure

LENGTHS = preset("ml-100k")


def test_the_front_is_filled_and_what_is_beaten_in_all_three_is_a_ring() -> None:
    data = pareto_data(score(LENGTHS, Lineup()).scores)
    marks = dict(zip([h.split(":")[0] for h in data["hover"]], data["symbol"], strict=True))
    # pad_max pads more than pad_batch, in as many batches, the largest as large
    assert marks["pad_max"] == "circle-open"
    assert marks["packed"] == marks["jagged"] == "circle"
    assert "jagged, segmented, sparse" in data["text"]
    assert max(data["size"]) == 34
    assert pareto_figure(data).data[0].x == tuple(data["x"])


def test_without_strategies_there_is_nothing_to_draw() -> None:
    assert pareto_data(())["x"] == []


def test_the_curve_says_padding_the_elbow_and_where_one_is() -> None:
    data = curve_data((200, 125, 110, 105), 100, 2, 160)
    assert data["y"] == pytest.approx([0.5, 0.2, 1 - 100 / 110, 1 - 100 / 105])
    assert (data["elbow_x"], data["elbow_y"]) == ([2], [data["y"][1]])
    assert (data["here_x"], data["here_y"]) == ([2], [1 - 100 / 160])
    assert curve_figure(data).data[2].y == (1 - 100 / 160,)
    nothing = curve_data((), 0, 3, None)
    assert nothing["elbow_x"] == nothing["here_x"] == []
