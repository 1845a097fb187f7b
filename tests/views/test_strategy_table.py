from __future__ import annotations

import re

import numpy as np
import pytest

from labkit.batching.strategies import Strategy
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import Score, score
from labkit.lengths.histogram import LengthHistogram
from labkit.views.columns import COLUMNS
from labkit.views.strategy_table import BADGES, strategy_table

LENGTHS = LengthHistogram.from_lengths(np.array([1, 9, 1, 9, 1, 9, 1, 9]))
CELL = re.compile(
    r'<td data-figure="(\w+)" data-value="([^"]*)" class="([^"]*)"[^>]*>([^<]*)'
    r'<sup class="(\w+)" title="([^"]+)">(.)</sup>'
)


def rows(html: str) -> dict[str, list[tuple[str, ...]]]:
    found = re.findall(r'<tr data-strategy="(\w+)">(.*?)</tr>', html)
    return {key: CELL.findall(body) for key, body in found}


@pytest.fixture
def board() -> tuple[Score, ...]:
    return score(LENGTHS, Lineup(rows=4, bucket_edges=(1, 9), token_budget=36)).scores


def test_every_strategy_has_a_row_and_every_number_a_badge(board):
    table = rows(strategy_table(board).html())
    assert list(table) == [str(s) for s in Strategy]
    marks = {mark for mark, _ in BADGES.values()}
    for cells in table.values():
        assert len(cells) == len(COLUMNS)
        assert {c[6] for c in cells} <= marks
        assert all(c[5] for c in cells)  # the badge says what it means


def test_numbers_are_those_of_the_what_if(board):
    # 8 rows padded to 9: 72 slots, 40 events; two buckets: 4 x 1 + 4 x 9 = 40 slots, no padding
    table = rows(strategy_table(board).html())
    assert [c[:2] for c in table["pad_max"]][:2] == [("padding_ratio", repr(1 - 40 / 72)), ("slots", "72")]
    assert table["pad_max"][0][3] == "44.4 %"
    assert [c[:2] for c in table["bucket_rows"]][:2] == [("padding_ratio", "0.0"), ("slots", "40")]


def test_badge_follows_the_origin_and_says_why(board):
    shapes = next(c for c in rows(strategy_table(board).html())["pad_batch"] if c[0] == "shapes")
    assert shapes[4:] == ("modelled", "upper bound: the widths depend on the shuffle", "m")


def test_best_of_a_column_is_marked_only_where_strategies_differ():
    same = score(LengthHistogram.from_lengths(np.array([4, 4])), Lineup(), [Strategy.PAD_MAX, Strategy.BUCKET_ROWS])
    assert "best" not in " ".join(c[2] for cells in rows(strategy_table(same.scores).html()).values() for c in cells)


def test_losses_stand_out(board):
    cut = score(LENGTHS, Lineup(max_length=3), [Strategy.PAD_RECENT]).scores
    lost = {c[0]: c for c in rows(strategy_table(cut).html())["pad_recent"]}
    # 4 of 8 users lose 6 of their 9 events: 24 of 40
    assert (lost["sequences_truncated"][1], lost["events_lost"][1]) == ("0.5", "0.6")
    assert "loss" in lost["events_lost"][2]
    whole = {c[0]: c for c in rows(strategy_table(board).html())["pad_max"]}
    assert "loss" not in whole["events_lost"][2]


def test_a_strategy_that_does_not_fit_shows_its_error_escaped_and_leaves_the_others():
    scores = score(LENGTHS, Lineup(bucket_edges=(1, 9), token_budget=8)).scores
    html = strategy_table(scores).html()
    assert "bucket width 9 is above token_budget 8" in html
    assert rows(html)["pad_max"]
    evil = Score(Strategy.PAD_MAX, None, None, "<script>x</script>")
    assert "<script>x" not in strategy_table([evil]).html()


def test_text_form_marks_modelled_numbers_and_names_errors(board):
    lines = repr(strategy_table(board)).splitlines()
    assert lines[0].split("  ")[0] == "strategy"
    assert lines[0].rstrip().endswith("ghost rows  users cut  events lost")
    assert next(line for line in lines if line.startswith("pad_batch")).count("~") == 2
    broken = repr(strategy_table(score(LENGTHS, Lineup(token_budget=8, bucket_edges=(1, 9))).scores))
    assert "jagged: longest length 9 is above token_budget 8" in broken


def test_request_number_is_echoed(board):
    assert 'data-seq="17"' in strategy_table(board).html(17)


def test_packs_say_what_they_are_made_of():
    # 9 | 9 | 9 | 9 and the four 1 in one more: five packs of capacity 9, shares 1, 1, 1, 1 and 1/4
    table = strategy_table(score(LENGTHS, Lineup(), [Strategy.PACKED, Strategy.JAGGED]).scores)
    assert table.html().count('<small class="packs"') == 1
    assert ">5 packs, largest user 85.0 % of a pack on average</small>" in table.html()
    assert "packed: 5 packs of 8 pieces, at most 0 % above the fewest possible (5); the largest user has" in repr(table)
