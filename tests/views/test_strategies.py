from __future__ import annotations

import dataclasses

import pytest

from labkit.batching.strategies import Strategy
from labkit.experiments.strategies import Config, run
from labkit.views import strategies as show
from labkit.views.plain_table import PlainTable

SMALL = Config(preset="ml-100k", planned_sequences=300, trained_sequences=200, epochs=1)


@pytest.fixture(scope="module")
def result():
    return run(SMALL)


def test_planned_table_has_every_strategy_and_says_what_does_not_fit(result):
    table = show.planned_table(result)
    assert [row[0] for row in table.rows] == [str(s) for s in Strategy]
    assert {len(row) for row in table.rows} == {len(table.header)}
    # a cap at the budget: everything that is cut fits, but pad_max never cuts and has no budget
    tight = run(dataclasses.replace(SMALL, token_budget=737))
    assert all(not row[1].startswith("does not fit") for row in show.planned_table(tight).rows)


def test_a_strategy_without_a_plan_keeps_its_row():
    planned = [p for p in run(SMALL).planned if p.strategy is Strategy.JAGGED]
    broken = dataclasses.replace(planned[0], audit=None, error="too long")
    row = show.planned_table(dataclasses.replace(run(SMALL), planned=(broken,))).rows[0]
    assert row[:2] == ("jagged", "does not fit: too long")


def test_advice_starts_from_padding_to_the_batch(result):
    assert show.advice(result).startswith("pad_batch today? Padding is ")


def test_figures_have_a_line_an_order_and_a_side(result):
    assert len(show.loss_curves(result).figure.data) == 4
    assert len(show.cap_sides(result).figure.data) == 4  # three sides, and what a random window never shows
    assert len(show.gradient_noise(result).figure.data[0].y) == 4
    assert [t.name for t in show.cap_curves(result).figure.data] == ["users cut", "events lost"]


def test_plain_table_escapes_and_aligns():
    table = PlainTable(("a", "b"), (("<x>", "1"), ("y", "22")), "note")
    assert "&lt;x&gt;" in table._repr_html_()
    assert repr(table) == "a     b\n<x>   1\ny    22\nnote"
