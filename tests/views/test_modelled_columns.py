"""The modelled columns of the strategies table."""

from __future__ import annotations

import re
from dataclasses import replace

from labkit.batching.strategies import Strategy
from labkit.cost.devices import gpu
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import score
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from labkit.views.strategy_table import StrategyTable, strategy_table

HISTOGRAM = LengthHistogram.from_lengths([1, 2, 3, 5, 8, 8, 30])
STRATEGIES = (Strategy.PAD_MAX, Strategy.BUCKET_GRAPH, Strategy.RNN_PACKED)


def table(choice: ModelChoice | None) -> StrategyTable:
    board = score(HISTOGRAM, Lineup(rows=4), STRATEGIES, choice)
    return strategy_table(board.scores, board.choice)


def cells(text: str, strategy: str) -> list[str]:
    (row,) = re.findall(rf'<tr data-strategy="{strategy}">(.*?)</tr>', text)
    return re.findall(r"<td[^>]*>.*?</td>", row)


def test_without_a_model_the_table_is_as_it_was() -> None:
    assert table(None).html() == strategy_table(score(HISTOGRAM, Lineup(rows=4), STRATEGIES).scores).html()
    assert "busy" not in table(None).html()


def test_a_gpu_adds_six_columns_each_with_its_badge() -> None:
    text = table(ModelChoice(Model.DIN, gpu("H100"))).html()
    heads = re.findall(r"<th title=[^>]*>(.*?)</th>", text)
    assert heads[-6:] == ["time", "busy", "bound", "peak", "launches", "kernels"]
    added = cells(text, "pad_max")[-6:]
    assert all('<sup class="modelled"' in cell for cell in added)
    assert re.search(r'data-figure="bound" data-value="launch"', added[2])
    assert "m</sup> modelled" in text


def test_what_the_model_does_not_take_is_a_dash_with_the_reason() -> None:
    added = cells(table(ModelChoice(Model.DIN, gpu("H100"))).html(), "rnn_packed")[-6:]
    assert all(cell.endswith(">–</td>") for cell in added)
    assert all("model din does not take the packed_sequence layout" in cell for cell in added)


def test_the_fewest_launches_are_the_best() -> None:
    text = table(ModelChoice(Model.DIN)).html()
    best = {s: 'class="best"' in cells(text, s)[-2] for s in ("pad_max", "bucket_graph")}
    assert best == {"pad_max": False, "bucket_graph": True}


def test_a_peak_above_the_memory_stands_out_and_is_no_best() -> None:
    small = replace(gpu("T4"), memory_bytes=13_000_000)
    text = table(ModelChoice(Model.DIN, small)).html()
    peaks = {key: next(c for c in cells(text, key) if "peak_bytes" in c) for key in ("pad_max", "bucket_graph")}
    assert 'class="loss"' in peaks["pad_max"]
    assert "MB!<sup" in peaks["pad_max"]
    assert 'class="best"' not in "".join(cells(text, "pad_max")[-6:])
    assert "! does not fit: the peak of pad_max" in text
    assert "! does not fit" not in table(ModelChoice(Model.DIN, gpu("T4"))).html()


def test_the_columns_are_explained_below() -> None:
    assert "bound: what rules the largest part of the time: arithmetic, bytes, or starting kernels" in repr(
        table(ModelChoice(Model.DIN, gpu("T4")))
    )


def test_as_text() -> None:
    lines = repr(table(ModelChoice(Model.DIN))).splitlines()
    assert lines[0].split()[-3:] == ["peak", "launches", "kernels"]
    assert lines[1].split()[-2:] == ["~204", "~204"]  # 2 batches of 102 kernels
    assert lines[3].split()[-3:] == ["-", "-", "-"]
    assert "modelled: din, training" in lines
