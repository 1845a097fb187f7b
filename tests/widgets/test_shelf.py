"""Kept settings: compared with each other or with what is shown, and brought back into all controls."""

from __future__ import annotations

import re

import numpy as np
import pytest

from labkit.batching.strategies import Strategy
from labkit.experiments.tune_buckets import Config
from labkit.models.registry import Model
from labkit.widgets.section import Section
from labkit.widgets.tuning_panel import TuningPanel


@pytest.fixture
def panel(tmp_path):
    made = TuningPanel(Config(), out=tmp_path / "tuned.json")
    yield made
    made.close()


def row(panel: TuningPanel, name: str) -> list[str]:
    body = re.search(rf'<tr data-row="{name}">(.*?)</tr>', panel.shelf.table.value)
    return re.findall(r'data-value="([^"]+)"', body[1]) if body else []


def heads(panel: TuningPanel) -> list[str]:
    return re.findall(r'<th scope="col"[^>]*>([^<]*)<', panel.shelf.table.value)


def test_nothing_is_compared_before_something_is_kept(panel) -> None:
    assert panel.shelf.table.value == ""
    assert all(button.disabled for button in panel.shelf.restore.values())


def test_a_is_compared_with_what_is_shown_until_b_is_kept(panel) -> None:
    for menu in panel.shelf.strategies.values():
        menu.value = Strategy.BUCKET_ROWS
    panel.shelf.keep["A"].click()
    assert panel.wait()
    assert heads(panel) == ["A", "now", "now − A"]
    assert row(panel, "slots") == ["122106", "122106", "0"]
    panel.edges._rows[2].field.value = "150"
    assert panel.wait()
    now = panel.board[Strategy.BUCKET_ROWS].what_if.slots
    assert row(panel, "slots") == ["122106", str(now), str(now - 122106)]
    panel.shelf.keep["B"].click()
    assert panel.wait()
    panel.edges.optimal.click()
    assert panel.wait()
    assert heads(panel) == ["A", "B", "B − A"]
    assert row(panel, "slots")[1] == str(now)
    assert row(panel, "time_s") == []
    assert "A: ml-100k, bucket_rows, 8 edges 35…737, rows 256" in panel.shelf.table.value


def test_a_model_adds_its_figures_and_a_side_without_one_a_dash(panel) -> None:
    panel.shelf.keep["A"].click()
    assert panel.wait()
    panel.models.model.value = Model.POOLED
    assert panel.wait()
    panel._traces.wait()
    assert panel.wait()
    assert len(row(panel, "launches")) == 1
    assert "no model was chosen" in panel.shelf.table.value


def test_restore_brings_every_control_back(panel, tmp_path) -> None:
    panel.settings.has_cap.value = True
    panel.settings.cap.field.value = "300"
    panel.settings.overflow.value = "truncate"
    panel.settings.rows.field.value = "99"
    panel.edges._rows[2].field.value = "120"
    assert panel.wait()
    edges, lineup = panel.edges.edges, panel._answered.lineup
    panel.shelf.keep["B"].click()
    assert panel.wait()
    np.save(tmp_path / "mine.npy", np.array([1, 2, 3, 9]))
    panel.data.source.value = "file"
    panel.data.path.value = str(tmp_path / "mine.npy")
    panel.data.open_button.click()
    assert panel.wait()
    panel.settings.has_cap.value = False
    panel.settings.rows.field.value = "5"
    panel.settings.overflow.value = "error"
    panel.edges.optimal.click()
    assert panel.wait()
    assert panel.board[Strategy.PAD_MAX].what_if.sequences == 4
    panel.shelf.restore["B"].click()
    assert panel.wait()
    assert panel._answered.lineup == lineup
    assert panel.edges.edges == edges
    assert panel.data.source.value == "ml-100k"
    assert panel.board[Strategy.PAD_MAX].what_if.sequences == 943
    assert "943" in panel.summary.value
    assert tuple(panel.editor.edges) == edges
    assert panel.editor.max_length == 300


def test_restored_optimal_edges_follow_the_number_of_buckets_again(panel) -> None:
    panel.shelf.keep["A"].click()
    assert panel.wait()
    panel.edges._rows[2].field.value = "150"
    assert panel.wait()
    panel.shelf.restore["A"].click()
    assert panel.wait()
    assert panel.edges.edges == (35, 66, 112, 168, 236, 307, 414, 737)
    panel.edges.buckets.value = 3
    assert panel.wait()
    assert len(panel.edges.edges) == 3


def test_what_is_kept_is_what_was_asked_for_last(panel) -> None:
    panel.settings.token_budget.field.value = "7777"
    panel.shelf.keep["A"].click()  # at once: nobody waits for the answer
    assert panel.wait()
    assert panel.shelf.kept["A"].lineup.token_budget == 7777
    assert panel.shelf.kept["A"].board[Strategy.JAGGED].policy.token_budget == 7777


def test_what_is_restored_is_what_was_kept_last(panel) -> None:
    panel.shelf.keep["A"].click()
    assert panel.wait()
    panel.settings.token_budget.field.value = "7777"
    panel.shelf.keep["A"].click()
    panel.shelf.restore["A"].click()  # at once: nobody waits for what is kept
    assert panel.wait()
    assert panel._answered.lineup.token_budget == 7777


def test_two_strategies_are_compared(panel) -> None:
    panel.shelf.keep["A"].click()
    assert panel.wait()
    panel.shelf.strategies["B"].value = Strategy.PACKED
    assert panel.wait()
    assert "now: ml-100k, packed, rows 256" in panel.shelf.table.value
    panel.shelf.keep["B"].click()
    assert panel.wait()
    padding = [panel.board[s].what_if.padding_ratio for s in (Strategy.BUCKET_BUDGET, Strategy.PACKED)]
    assert [float(x) for x in row(panel, "padding_ratio")] == pytest.approx([*padding, padding[1] - padding[0]])
    assert "B: ml-100k, packed, rows 256" in panel.shelf.table.value


def test_different_lengths_are_said_to_be_so(panel) -> None:
    panel.shelf.keep["A"].click()
    assert panel.wait()
    assert panel.shelf.note.value == ""
    panel.data.source.value = "cdnow"
    assert panel.wait()
    assert "A and now are of different lengths" in panel.shelf.note.value


def test_a_section_shows_and_hides_what_is_below_it() -> None:
    section = Section("title", [], is_open=False)
    assert section.body.layout.display == "none"
    section.heading.click()
    assert (section.is_open, section.body.layout.display, section.heading.icon) == (True, "", "caret-down")
