"""The table, the picture, the DIN table, the diagnosis and the progress of notebook 03."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest

from labkit.batching.strategies import Strategy
from labkit.cost.devices import gpu
from labkit.cost.step_time import Bound
from labkit.experiments.compare_rows import Compared
from labkit.experiments.diagnosis import diagnose
from labkit.experiments.din_experiment import din_experiment, din_policies
from labkit.experiments.measure_job import Progress
from labkit.experiments.next_bound import Move, NextBound, next_bound
from labkit.experiments.time_split import measured_split, modelled_split
from labkit.experiments.what_if_model import ModelChoice, Modelled
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from labkit.provenance import Origin
from labkit.views.compare_columns import COLUMNS, Group
from labkit.views.compare_table import CompareTable
from labkit.views.diagnosis_table import DiagnosisTable, next_bound_table
from labkit.views.din_table import DinTable, din_prose
from labkit.views.plain_progress import PlainProgress
from labkit.views.time_split_figure import split_data, time_split_figure
from tests.experiments.compare_cases import H100, modelled, record, row, with_audit

TITLES = {Group.EXACT: "a plan", Group.MODELLED: "din on H100", Group.MEASURED: "cpu: hand"}
LENGTHS = np.repeat([1, 3, 600], [500, 400, 100])
CHOICE = ModelChoice(Model.DIN, gpu("H100"))


def table(*rows: Compared) -> CompareTable:
    return CompareTable(rows, TITLES, "by hand")


def cells(text: str, strategy: str) -> list[str]:
    (found,) = re.findall(rf'<tr data-strategy="{strategy}"[^>]*>(.*?)</tr>', text)
    return re.findall(r"<td[^>]*>.*?</td>", found)


def full(strategy: Strategy = Strategy.BUCKET_BUDGET, **values: float) -> Compared:
    return row(strategy, modelled=modelled(Bound.LAUNCH, **values), record=record(**values))


def test_every_column_has_numbers_of_one_origin_each_with_its_badge() -> None:
    found = cells(table(full(utilization=0.5, peak_bytes=8.0, loader_wait_share=0.1)).html(), "bucket_budget")
    assert len(found) == len(COLUMNS)
    for cell, column in zip(found, COLUMNS, strict=True):
        assert f'data-group="{column.group}"' in cell
        assert f'<sup class="{column.group}"' in cell


def test_a_stored_run_has_the_badge_of_a_recorded_number() -> None:
    html = table(row(record=record(origin=Origin.RECORDED))).html()
    assert '<sup class="recorded"' in html
    assert "recorded: a stored run" in html
    assert '<sup class="measured"' not in html


def test_the_best_of_a_column_is_marked_and_only_where_strategies_differ() -> None:
    html = table(full(epoch_s=2.0, events_per_s=5.0), full(Strategy.JAGGED, epoch_s=1.0, events_per_s=9.0)).html()
    best = {
        strategy: re.findall(r'data-group="measured" data-figure="(\w+)"[^>]*class="best', html_row)
        for strategy, html_row in ((s, "".join(cells(html, s))) for s in ("bucket_budget", "jagged"))
    }
    assert best == {"bucket_budget": [], "jagged": ["epoch_s", "events_per_s"]}


def test_what_cannot_run_gives_its_reason_and_is_never_the_best() -> None:
    refused = row(Strategy.RNN_PACKED, modelled=Modelled.refused("not for din"), record=None)
    padded = replace(full(), audit=with_audit(padding_ratio=0.5).audit)
    html = table(padded, replace(full(Strategy.JAGGED), audit=with_audit(padding_ratio=0.25).audit), refused).html()
    found = cells(html, "rnn_packed")
    assert "not for din" in found[-2]
    assert "no device was asked for" in found[-1]
    assert not [cell for cell in found if "best" in cell]
    assert 'class="best' in "".join(cells(html, "jagged"))


def test_a_peak_above_the_memory_stands_out_and_is_no_best() -> None:
    over = replace(modelled(peak_bytes=1.0), fits=False)
    shown = table(row(modelled=over), full(Strategy.PAD_MAX, peak_bytes=2.0))
    (peak,) = [c for c in cells(shown.html(), "bucket_budget") if 'modelled" data-figure="peak_bytes"' in c]
    assert 'class="loss"' in peak
    assert "1 B!<sup" in peak
    assert "~1 B!" in repr(shown)
    for text in (shown.html(), repr(shown)):
        assert "! does not fit the GPU: bucket_budget; the time is as if it had more memory" in text
        assert "bound: what rules the largest part of the time" in text
    assert "does not fit" not in repr(table(full()))


def test_a_strategy_that_does_not_fit_has_one_line_over_all_columns() -> None:
    html = table(row(audit=None, error="600 > 512 <truncate>")).html()
    (cell,) = cells(html, "bucket_budget")
    assert f'colspan="{len(COLUMNS)}"' in cell
    assert "600 &gt; 512 &lt;truncate&gt;" in cell


def test_the_table_as_text_marks_every_number_and_gives_every_reason_once() -> None:
    text = repr(table(full(), row(Strategy.RNN_PACKED, modelled=Modelled.refused("not for din"))))
    header, first, second, *rest = text.splitlines()
    assert header.split()[:2] == ["strategy", "padding"]
    assert "~launch" in first
    assert "*2.00 s" in first
    assert second.split()[-1] == "-"
    assert rest.count("rnn_packed: not for din") == 1


def test_the_picture_has_a_panel_a_device_and_the_fastest_on_top() -> None:
    rows = (full(time_s=1.0, loader_wait_share=0.1), full(Strategy.JAGGED, loader_wait_share=0.1))
    figure = time_split_figure(rows, "modelled: H100", "measured: cpu")
    assert [a.text for a in figure.layout.annotations] == ["modelled: H100", "measured: cpu"]
    assert figure.data[0].y == ("jagged", "bucket_budget")  # drawn from below
    only = time_split_figure((replace(rows[0], record=None),), "modelled: H100", "measured: cpu")
    assert [a.text for a in only.layout.annotations] == ["modelled: H100"]


def test_the_parts_of_a_bar_add_up_to_the_epoch() -> None:
    rows = (row(modelled=modelled(useful_s=1.0, padding_s=2.0, gap_s=4.0)), row(Strategy.JAGGED))
    data = split_data(rows, modelled_split)
    assert (data["useful_s"], data["padding_s"], data["gap_s"]) == ([None, 1.0], [None, 2.0], [None, 4.0])
    assert data["end"] == [0.0, 7.0]
    assert data["text"] == ["  –", "  7.00 s"]
    assert split_data(rows, measured_split)["end"] == [0.0, 0.0]


def test_the_diagnosis_says_a_shared_number_once() -> None:
    first = with_audit(padding_ratio=0.5)
    found = DiagnosisTable(diagnose([first, replace(first, strategy=Strategy.PAD_MAX)], H100))
    assert "padding 50.0 %: bucket_budget, pad_max" in repr(found)
    html = found._repr_html_()
    assert html.count("padding 50.0 %") == 1
    assert '<sup class="exact"' in html
    assert "remedy" in html


def test_without_a_symptom_the_diagnosis_says_so() -> None:
    assert repr(DiagnosisTable(())) == "No symptom applies: nothing here is above its threshold."
    assert "No symptom applies" in DiagnosisTable(())._repr_html_()


def test_another_bound_stands_out_among_the_changes() -> None:
    now = Move("as it is", 8, Bound.LAUNCH, 2.0, 1e9, fits=True)
    larger = Move("twice as large", 4, Bound.COMPUTE, 1.0, 2e9, fits=True)
    text = repr(next_bound_table(NextBound(now, (larger,), ""), "jagged", "H100"))
    assert "compute ◂ another bound" in text
    assert "0.50 x" in text
    assert "has no modelled time" in repr(next_bound_table(None, "segmented", "H100"))


def test_larger_batches_are_tried_until_another_bound_rules() -> None:
    histogram = LengthHistogram.from_lengths(np.full(4000, 20))
    policy = row(Strategy.JAGGED).policy
    assert policy is not None
    found = next_bound(replace(policy, token_budget=500), histogram, CHOICE)
    assert found is not None
    assert found.now.bound is Bound.LAUNCH
    larger = [move for move in found.moves if move.what.startswith("batches")]
    assert larger[0].what == "batches 2 times as large (token_budget 1,000)"
    assert (larger[-1].bound is Bound.LAUNCH) == ("still ruled by launch" in found.note)
    assert larger[0].time_s < found.now.time_s


def test_one_batch_cannot_be_made_larger() -> None:
    found = next_bound(row(Strategy.JAGGED).policy, LengthHistogram.from_lengths([3, 4]), CHOICE)  # type: ignore[arg-type]
    assert found is not None
    assert found.note == "an epoch is one batch already: only more data would make it larger"
    assert not [move for move in found.moves if move.what.startswith("batches")]


@pytest.fixture(scope="module")
def experiment():
    histogram = LengthHistogram.from_lengths(LENGTHS)
    times = dict(zip(din_policies(histogram).values(), (8.0, 4.0, 2.0), strict=True))
    records = {policy: record(epoch_s=time) for policy, time in times.items()}
    return din_experiment(histogram, LENGTHS, CHOICE, 0, records)


def test_published_figures_have_a_group_of_their_own_and_no_badge(experiment) -> None:
    html = DinTable(experiment)._repr_html_()
    published = re.findall(r'<td data-group="published"[^>]*>(.*?)</td>', html)
    assert published == ["1.00", "58.0 %", "11.20 GB", "0.58", "82.0 %", "6.40 GB", "0.47", "91.0 %", "5.80 GB"]
    measured = re.findall(r'<td data-group="measured" data-figure="time"[^>]*>([\d.]+)<sup class="measured"', html)
    assert measured == ["1.00", "0.50", "0.25"]
    assert "the source gives no device" in html


def test_what_the_description_leaves_open_is_listed(experiment) -> None:
    text = repr(din_prose(experiment))
    assert "- the data: here the lengths of this notebook" in text
    assert text.startswith("Published, the bucketed ways take 0.58 and 0.47")


def test_progress_is_a_line_a_strategy_and_is_rewritten_in_place() -> None:
    out = io.StringIO()
    show = PlainProgress(out)
    show(Progress("jagged", 0, 2, 0, 0.0, 2.0))
    show(Progress("jagged", 0, 2, 1, 0.1, 2.0))  # too soon after the last
    show(Progress("jagged", 0, 2, 9, 0.7, 2.0))
    show(record("jagged"))
    lines = [line.rstrip() for line in out.getvalue().replace("\n", "").split("\r")]
    assert lines == [
        "",
        "1/2 jagged: warming up",
        "1/2 jagged: 9 steps, 0.7 s",
        "1/2 jagged: 5 events/s, an epoch in 2.00 s",
    ]
