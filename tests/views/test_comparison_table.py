from __future__ import annotations

import re

from labkit.batching.strategies import Strategy
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import Score, score
from labkit.lengths.histogram import LengthHistogram
from labkit.views.comparison_table import Side, comparison_table

# 8 rows of 1 or 9 events, 40 in all: padded to 9 they are 72 slots, padded to 1 and 9 they are 40
LENGTHS = LengthHistogram.from_lengths([1, 9] * 4)


def of(*edges: int) -> Score:
    return score(LENGTHS, Lineup(rows=4, bucket_edges=edges), [Strategy.BUCKET_ROWS])[Strategy.BUCKET_ROWS]


def cells(html: str, row: str) -> list[str]:
    body = re.search(rf'<tr data-row="{row}">(.*?)</tr>', html)
    assert body is not None
    return [re.sub("<[^>]+>", " ", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", body[1])]


def test_each_side_has_its_badge_and_the_difference_is_a_share_of_the_first() -> None:
    html = comparison_table(Side("A", "one edge", of(9)), Side("B", "two edges", of(1, 9)))
    assert cells(html, "slots") == ["72 e", "40 e", "−44.4 %"]
    assert 'title="−32"' in html
    assert cells(html, "padding_ratio") == ["44.4 % e", "0 % e", "−44.4 points"]
    assert cells(html, "events_lost") == ["0 e", "0 e", "="]
    assert 'data-row="time_s"' not in html


def test_a_side_that_does_not_fit_says_why_escaped() -> None:
    broken = Score(Strategy.BUCKET_ROWS, None, None, "<b>too long</b>")
    html = comparison_table(Side("A", "one edge", of(9)), Side("now", "broken", broken))
    assert cells(html, "slots") == ["72 e", "–", "–"]
    assert "now: broken: &lt;b&gt;too long&lt;/b&gt;" in html
