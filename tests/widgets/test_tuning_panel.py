from __future__ import annotations

import gc
import re
import threading

import numpy as np
import pytest
from ipywidgets.widgets.widget import _instances

from labkit.batching.strategies import Strategy
from labkit.config import TunedConfig
from labkit.errors import LabkitError
from labkit.experiments.lineup import EdgesBy
from labkit.experiments.tune_buckets import GENERATED, Config
from labkit.views.strategy_table import strategy_table
from labkit.widgets.tuning_panel import TuningPanel


@pytest.fixture
def panel(tmp_path):
    made = TuningPanel(Config(), out=tmp_path / "tuned.json")
    yield made
    made.close()


def padding(panel, strategy="bucket_budget"):
    found = re.search(rf'data-strategy="{strategy}">.*?data-value="([^"]+)"', panel.table.value)
    return float(found[1])


def move(panel, row, value):
    panel.edges._rows[row].field.value = str(value)
    assert panel.wait()


def test_it_opens_with_the_optimum_in_every_view(panel):
    assert panel.edges.edges == (35, 66, 112, 168, 236, 307, 414, 737)
    assert round(padding(panel), 4) == 0.1810
    assert tuple(panel.editor.edges) == panel.edges.edges == tuple(panel.editor.optimum["edges"])
    assert len(panel.figures.pareto.data[0].y) == len(Strategy)
    best, elbow, here = panel.figures.curve.data
    assert best.y[7] == here.y[0] == padding(panel, "bucket_rows")
    assert len(elbow.x) == 1
    assert panel.message.text == ""


def test_a_moved_edge_changes_table_pictures_and_notes(panel):
    before = panel.table.value
    move(panel, 2, 150)
    assert padding(panel) > 0.1810
    assert panel.table.value != before
    assert panel.editor.edges[2] == 150
    assert panel.figures.curve.data[2].y[0] > panel.figures.curve.data[0].y[7]
    assert "pad" in panel.edges._rows[2].note.value
    panel.edges.optimal.click()
    assert panel.wait()
    assert round(padding(panel), 4) == 0.1810


def test_edges_moved_on_the_histogram_reach_every_twin_and_are_answered(panel):
    panel.editor.set_state({"edges": [40, 200, 737], "max_length": 500, "seq": 1})
    assert panel.wait()
    assert panel.editor.answered == 1
    assert panel.edges.edges == (40, 200, 737)  # above the cap it waits for the cap to go
    assert panel.edges.buckets.value == 3
    assert (panel.settings.has_cap.value, panel.settings.cap.value) == (True, 500)
    policy = panel.board[Strategy.BUCKET_ROWS].policy
    assert (policy.bucket_edges, policy.max_length) == ((40, 200, 737), 500)
    panel.editor.set_state({"edges": [40, 200, 737], "max_length": None, "seq": 2})
    assert panel.wait()
    assert not panel.settings.has_cap.value


def test_a_data_set_without_a_cap_takes_no_edges_of_the_one_before(panel):
    move(panel, 2, 150)
    panel.data.source.value = "cdnow"
    assert panel.wait()
    assert panel.editor.edges[-1] == 217
    assert "The edges set by hand were for other lengths: these are optimal." in panel.message.text
    panel.settings.rows.field.value = "17"
    assert panel.wait()
    assert panel.message.text == ""


def test_a_request_of_elsewhere_never_takes_a_move_of_the_page_back(panel, monkeypatch):
    """A measurement that ends asks for a new answer while a move is on its way to the controls."""
    panel.editor.set_state({"edges": [40, 200, 737], "max_length": None, "seq": 1})
    assert panel.wait()
    monkeypatch.setattr(panel.editor, "_changed", panel._enqueue)  # the controls have not taken the move yet
    panel.editor.set_state({"edges": [40, 300, 737], "max_length": None, "seq": 2})
    assert panel.wait()
    assert panel.editor.edges == [40, 300, 737]
    assert panel.editor.answered == 1  # the move itself is still to be answered
    panel._edited()
    assert panel.wait()
    assert (panel.editor.edges, panel.editor.answered) == ([40, 300, 737], 2)


def test_optimal_edges_follow_a_cap_that_is_dragged_and_come_back_without_it(panel):
    panel.editor.set_state({"max_length": 200, "seq": 1})
    assert panel.wait()
    assert (panel.editor.edges[-1], len(panel.editor.edges)) == (200, 8)
    assert panel.editor.edges == panel.editor.optimum["edges"]
    assert panel.edges.edges_by is EdgesBy.OPTIMAL
    panel.settings.has_cap.value = False
    assert panel.wait()
    assert panel.editor.edges == [35, 66, 112, 168, 236, 307, 414, 737]


def test_a_cap_typed_while_an_edge_moves_stays(panel):
    panel.editor.set_state({"edges": [40, 200, 737], "max_length": 600, "seq": 1})
    assert panel.wait()
    panel.settings.cap.field.value = "300"
    panel.editor.set_state({"edges": [41, 200, 737], "seq": 2})  # on its way before the page heard of 300
    assert panel.wait()
    assert panel.settings.max_length == panel.editor.max_length == 300
    assert panel.board[Strategy.BUCKET_ROWS].policy.max_length == 300


def test_an_answer_that_fails_is_said_and_lets_the_next_move_through(panel, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr("labkit.widgets.tuning_panel.score", broken)
    panel.editor.set_state({"edges": [40, 200, 737], "max_length": None, "seq": 1})
    assert panel.wait()
    assert "broken" in panel.message.text
    assert panel.editor.answered == 1


def test_with_many_distinct_lengths_the_optimum_is_found_when_the_hand_rests(panel, monkeypatch):
    monkeypatch.setattr("labkit.experiments.optimum._QUICK", 100)
    shown = []
    panel.editor.observe(lambda change: shown.append(change["new"]), "optimum")
    panel.editor.set_state({"edges": [40, 200, 737], "max_length": 700, "seq": 1})
    assert panel.wait()
    assert shown[0] == {}  # not known yet, and that of another cap would be wrong
    assert (shown[-1]["cap"], len(shown[-1]["edges"])) == (700, 3)


def test_a_panel_that_cannot_be_made_leaves_nothing_behind(tmp_path, capsys):
    before = threading.active_count()
    with pytest.raises(LabkitError):
        TuningPanel(Config(lengths_file=str(tmp_path / "none.csv")))
    gc.collect()
    assert capsys.readouterr().err == ""
    assert threading.active_count() <= before


def test_a_capacity_of_packs_is_set_beside_the_rows(panel):
    controls = panel.settings
    packs = panel.board[Strategy.PACKED].what_if.packs
    assert controls.lineup.capacity is None
    assert controls.capacity.field.disabled
    controls.has_capacity.value = True
    controls.capacity.field.value = "2000"
    assert panel.wait()
    assert controls.lineup.capacity == panel.board[Strategy.PACKED].policy.capacity == 2000
    assert panel.board[Strategy.PACKED].what_if.packs < packs
    # below the longest history, the row says so, until its overflow is split
    controls.capacity.field.value = "300"
    assert panel.wait()
    assert "longest length 737 > capacity 300" in panel.board[Strategy.PACKED].error
    controls.overflow.value = "split"
    assert panel.wait()
    assert panel.board[Strategy.PACKED].what_if.events_lost == 0
    assert panel.board[Strategy.BUCKET_ROWS].what_if is not None
    controls.has_capacity.value = False
    assert panel.wait()
    assert panel.board[Strategy.PACKED].what_if.packs == packs


def test_the_table_is_that_of_the_newest_request_after_a_flood(panel):
    for value in range(70, 111):
        panel.edges._rows[2].field.value = str(value)
    assert panel.wait()
    assert panel.board[Strategy.BUCKET_ROWS].policy.bucket_edges[2] == 110
    assert panel.table.value == strategy_table(panel.board.scores).html(panel._seq)


def test_a_last_edge_below_the_longest_is_explained_and_the_menu_mends_it(panel):
    move(panel, 7, 500)
    assert "longest length 737 &gt; last bucket edge 500 (5 of 943 sequences above it)" in panel.table.value
    panel.settings.overflow.value = "truncate"
    assert panel.wait()
    assert panel.board[Strategy.BUCKET_BUDGET].what_if.sequences_truncated == 5


def test_cap_and_multiples_reach_the_policies(panel):
    panel.settings.cap.field.value = "200"  # no effect before the box is ticked
    assert panel.wait()
    assert panel.board[Strategy.BUCKET_ROWS].policy.max_length is None
    panel.settings.has_cap.value = True
    panel.settings.length_multiple.value = 8
    panel.settings.rows.field.value = "17"
    assert panel.wait()
    policy = panel.board[Strategy.BUCKET_ROWS].policy
    assert (policy.max_length, policy.length_multiple, policy.rows) == (200, 8, 17)
    assert panel.edges.edges[-1] == 200
    assert panel.editor.max_length == 200
    assert panel.editor.rules["lengthMultiple"] == 8


def test_two_hundred_updates_add_no_widget_and_send_one_message_a_figure(panel):
    figure, sent = panel.figures.curve, []
    before = len(_instances)
    messages = ["_py2js_relayout", "_py2js_restyle", "_py2js_update"]
    figure.observe(lambda change: change["new"] and sent.append(1), messages)
    for i in range(200):
        move(panel, 1, 50 + i % 10)
    assert len(_instances) == before
    assert len(sent) <= 200


def test_other_data_comes_in_through_the_menu(panel):
    move(panel, 1, 50)  # edges set by hand belong to the old data
    panel.data.source.value = "cdnow"
    assert panel.wait()
    assert panel.edges.edges == (1, 2, 4, 7, 13, 26, 62, 217)
    assert round(padding(panel), 4) == 0.1846
    assert "23.6 k" in panel.summary.value
    panel.data.source.value = GENERATED
    assert panel.wait()
    panel.data.longest.field.value = "64"
    assert panel.wait()
    assert panel.board[Strategy.PAD_MAX].what_if.groups[0].width <= 64


def test_a_file_is_opened_by_its_button_and_a_bad_one_leaves_the_old_data(panel, tmp_path):
    np.save(tmp_path / "mine.npy", np.array([1, 2, 3, 9]))
    panel.data.source.value = "file"
    panel.data.path.value = str(tmp_path / "nothing.npy")
    panel.data.open_button.click()
    assert panel.wait()
    assert "nothing.npy" in panel.message.text
    assert panel.board[Strategy.PAD_MAX].what_if.sequences == 943
    panel.data.path.value = str(tmp_path / "mine.npy")
    panel.data.open_button.click()
    assert panel.wait()
    assert panel.board[Strategy.PAD_MAX].what_if.sequences == 4
    assert panel.message.text == "" or "left" in panel.message.text


def test_fewer_buckets_than_asked_is_said(panel):
    panel.data.source.value = "cdnow"
    panel.edges.quantile.click()
    assert panel.wait()
    assert "8 buckets asked, 5 left" in panel.message.text


def test_export_writes_what_is_shown(panel, tmp_path):
    move(panel, 2, 150)
    panel.export.button.click()
    assert panel.wait()
    assert "Saved" in panel.export.answer.text
    tuned = TunedConfig.load(tmp_path / "tuned.json")
    assert tuned.batch_policy == panel.board[Strategy.BUCKET_BUDGET].policy
    assert tuned.batch_policy.bucket_edges[2] == 150


def test_export_writes_what_was_asked_for_last(panel, tmp_path):
    for budget in (9009, 20_000, 7777):
        panel.settings.token_budget.field.value = str(budget)
        panel.export.button.click()  # at once: nobody waits for the answer
        assert panel.wait()
        assert "Saved" in panel.export.answer.text
        assert TunedConfig.load(tmp_path / "tuned.json").batch_policy.token_budget == budget


def test_an_answer_to_the_same_settings_leaves_what_was_saved(panel):
    panel.export.button.click()
    assert panel.wait()
    panel._enqueue()  # as a measurement that ends does
    assert panel.wait()
    assert "Saved" in panel.export.answer.text


def test_an_export_that_cannot_be_written_says_why(panel, tmp_path):
    panel.export._path.value = str(tmp_path / "no" / "way" / "tuned.json")
    panel.export.button.click()
    assert panel.wait()
    assert "does not exist" in panel.export.answer.text
    assert list(tmp_path.iterdir()) == []


def test_what_was_saved_is_not_claimed_for_other_settings(panel):
    panel.export.button.click()
    assert panel.wait()
    assert "Saved" in panel.export.answer.text
    move(panel, 2, 150)
    assert panel.export.answer.text == ""


def test_an_unforeseen_export_error_is_shown_at_the_button_and_logged(panel, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("division by zero")

    panel.export.button.click()
    assert panel.wait()
    monkeypatch.setattr("labkit.widgets.tuning_panel.save_tuned", broken)
    panel.export.button.click()
    assert panel.wait()
    assert "unexpected ZeroDivisionError: division by zero" in panel.export.answer.text
    assert "Saved" not in panel.export.answer.text
    assert "worker failed" in caplog.text


def test_a_failed_open_stays_explained_until_data_is_read(panel):
    panel.data.source.value = "file"
    panel.data.path.value = "nothing.npy"
    panel.data.open_button.click()
    assert panel.wait()
    move(panel, 2, 150)
    assert "nothing.npy" in panel.message.text
    assert "Still shown" in panel.message.text
    panel.data.source.value = "cdnow"
    assert panel.wait()
    assert "nothing.npy" not in panel.message.text


def test_no_path_is_no_file(panel):
    panel.data.source.value = "file"
    panel.data.open_button.click()
    assert panel.wait()
    assert panel.message.text.startswith("Type the path of a file")
    assert panel.message.is_error


def test_closing_leaves_no_widget_behind_and_a_panel_can_replace_another():
    before = set(_instances)
    first = TuningPanel(Config())
    size = len(_instances) - len(before)
    second = TuningPanel(Config(), replaces=first)
    assert len(_instances) - len(before) <= size
    second.close()
    second.close()
    assert set(_instances) - before == set()


def test_an_unexpected_error_is_shown_and_logged(panel, caplog):
    panel._fail(ZeroDivisionError("division by zero"))
    assert "unexpected ZeroDivisionError: division by zero" in panel.message.text
    assert "worker failed" in caplog.text


def test_data_that_cannot_be_read_at_the_start_is_an_error():
    with pytest.raises(LabkitError, match="no preset"):
        TuningPanel(Config(preset="nope"))


def test_more_buckets_than_rows_is_said():
    made = TuningPanel(Config(buckets=40))
    assert len(made.edges.edges) == 16
    made.close()
