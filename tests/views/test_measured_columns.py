"""Measured columns: beside the modelled ones, dimmed where they are of earlier settings, empty only with a reason."""

from __future__ import annotations

import re

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.bench.record import FIGURES, Record
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import score
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from labkit.provenance import Figure, Origin
from labkit.views.measured_columns import Measured
from labkit.views.strategy_table import MINOR, strategy_table

LENGTHS = LengthHistogram.from_lengths([1, 2, 3, 5, 8, 8, 30])
KEYS = (Strategy.PAD_MAX, Strategy.PAD_BATCH, Strategy.JAGGED)


def record(strategy: Strategy, rate: float) -> Record:
    known = {name: Figure(rate, unit, Origin.MEASURED, "traced") for name, unit in FIGURES.items()}
    who = {"strategy": str(strategy), "device": "cpu: a machine", "model": "din", "environment": {}}
    return Record(policy=BatchPolicy(strategy, rows=4).to_dict(), figures=known, **who)


def lost(strategy: Strategy) -> Record:
    who = {"strategy": str(strategy), "policy": {}, "device": "cpu", "model": "din", "environment": {}}
    return Record.failed("out of memory at a batch of 4 x 30", **who)


MEASURED = Measured(
    "din on cpu",
    {KEYS[0]: record(KEYS[0], 50.0), KEYS[1]: record(KEYS[1], 90.0), KEYS[2]: lost(KEYS[2])},
    stale=frozenset({KEYS[1]}),
)


def html(choice: ModelChoice | None = None) -> str:
    return strategy_table(score(LENGTHS, Lineup(rows=4), KEYS, choice).scores, choice, MEASURED).html()


def cell(text: str, strategy: Strategy, figure: str = "events_per_s") -> str:
    row = re.search(rf'<tr data-strategy="{strategy}">(.*?)</tr>', text)
    assert row is not None
    found = re.search(rf'<td data-figure="measured_{figure}".*?</td>', row[1])
    assert found is not None
    return found[0]


def test_a_measured_number_has_its_badge_and_one_of_earlier_settings_is_marked() -> None:
    text = html()
    assert "measured: din on cpu; <i>slanted: for earlier settings</i>" in text
    assert '<sup class="measured">✓</sup>' in cell(text, Strategy.PAD_MAX)
    assert "stale" not in cell(text, Strategy.PAD_MAX)
    assert 'class="first stale" title="for earlier settings; traced"' in cell(text, Strategy.PAD_BATCH)
    assert "measured: on this device, now" in text


def test_what_was_not_measured_is_a_dash_with_the_reason() -> None:
    assert "out of memory at a batch of 4 x 30" in cell(html(), Strategy.JAGGED)
    assert cell(html(), Strategy.JAGGED).endswith(">–</td>")


def test_a_stale_number_is_never_the_best() -> None:
    assert MEASURED.best() == {}  # one of two is stale, and one alone is no best
    assert Measured("x", dict(list(MEASURED.records.items())[:2])).best()["events_per_s"] == 90.0


def test_heads_of_groups_span_all_columns_also_when_the_minor_ones_are_left_out() -> None:
    text = html(ModelChoice(Model.DIN))
    head = re.search(r"<thead><tr class=\"groups\">(.*?)</tr><tr>(.*?)</tr></thead>", text)
    assert head is not None
    spans = [int(n) for n in re.findall(r'colspan="(\d+)"', head[1])]
    minor = head[1].count('class="minor"')
    names = re.findall(r"<th[^>]*>(.*?)</th>", head[2])
    assert minor == sum(name in MINOR for name in names) == 4
    assert sum(spans) + minor + 1 == len(names)
    row = re.search(r'<tr data-strategy="pad_max">(.*?)</tr>', text)
    assert row is not None
    assert row[1].count('class="minor') == 4
