"""Measuring without a browser: records beside the scores, fresh or of earlier settings, errors at the button."""

from __future__ import annotations

import re
import threading

import psutil
import pytest

from labkit.batching.strategies import Strategy
from labkit.experiments.tune_buckets import Config
from labkit.models.registry import Model
from labkit.widgets.tuning_panel import TuningPanel


@pytest.fixture
def panel(tmp_path):
    made = TuningPanel(Config(rows=64), out=tmp_path / "tuned.json")
    made.measuring.controls.seconds.value = 2.0  # an epoch fits
    yield made
    made.close()


def cell(panel: TuningPanel, strategy: str, figure: str) -> tuple[str, str] | None:
    row = re.search(rf'data-strategy="{strategy}">(.*?)</tr>', panel.table.value)
    found = re.search(rf'data-figure="measured_{figure}" data-value="([^"]+)" class="([^"]*)"', row[1])
    return None if found is None else (found[1], found[2])


def measure(panel: TuningPanel, strategy: Strategy | str) -> None:
    panel.measuring.controls.strategy.value = strategy
    panel.measuring.controls.button.click()
    assert panel.wait()
    assert panel.measuring.wait(120), panel.measuring.controls.answer.text
    assert panel.wait()


def test_a_measured_strategy_is_beside_the_exact_and_stale_after_its_policy_changed(panel) -> None:
    assert "measured:" not in panel.table.value
    measure(panel, Strategy.BUCKET_ROWS)
    assert "measured: din on cpu" in panel.table.value
    assert "1 of 1 strategies measured" in panel.measuring.controls.answer.text
    rate, kind = cell(panel, "bucket_rows", "events_per_s")
    assert float(rate) > 0
    assert "stale" not in kind
    assert cell(panel, "bucket_rows", "launches") is not None
    assert cell(panel, "pad_max", "events_per_s") is None
    assert "1 of 1 strategies measured. 943 sequences" in panel.measuring.controls.answer.text
    panel.settings.token_budget.field.value = "9000"  # not a setting of bucket_rows
    assert panel.wait()
    assert "stale" not in cell(panel, "bucket_rows", "events_per_s")[1]
    panel.edges._rows[2].field.value = "150"
    assert panel.wait()
    assert cell(panel, "bucket_rows", "events_per_s") == (rate, "first stale")
    assert "for earlier settings" in panel.table.value
    panel.edges.optimal.click()
    assert panel.wait()
    assert "stale" not in cell(panel, "bucket_rows", "events_per_s")[1]
    panel.models.model.value = Model.POOLED  # another model was measured
    assert panel.wait()
    assert "stale" in cell(panel, "bucket_rows", "events_per_s")[1]


def test_what_cannot_be_measured_is_said_at_the_button(panel) -> None:
    measure(panel, Strategy.RNN_PACKED)
    controls = panel.measuring.controls
    assert "model din does not take the packed_sequence layout" in controls.answer.text
    assert controls.answer.is_error
    assert (controls.button.disabled, controls.cancel.disabled) == (False, True)
    if ("cuda", "cuda") not in [(v, v) for _, v in controls.device.options]:
        pytest.skip("a GPU is there")
    controls.device.value = "cuda"
    measure(panel, Strategy.PAD_MAX)
    assert "there is no CUDA device: torch" in controls.answer.text


def test_cancel_keeps_what_there_is_and_closing_ends_the_child(panel) -> None:
    controls = panel.measuring.controls
    controls.seconds.value = 60.0
    assert controls.cancel.disabled
    warm = threading.Event()
    controls.bar.observe(lambda _: warm.set(), "value")
    controls.answer.observe(lambda change: "pad_max (1 of" in change["new"] and warm.set(), "text")
    controls.button.click()
    assert (controls.button.disabled, controls.cancel.disabled) == (True, False)
    assert warm.wait(60)
    controls.cancel.click()
    assert panel.measuring.wait()
    assert "cancelled: 0 of" in controls.answer.text
    assert (controls.button.disabled, controls.cancel.disabled) == (False, True)
    warm.clear()
    controls.button.click()
    assert warm.wait(60)
    child = panel.measuring._thread.pid
    panel.close()
    assert child is not None
    assert not psutil.pid_exists(child)


def test_the_same_lengths_read_again_are_not_other_lengths(panel) -> None:
    measure(panel, Strategy.PAD_MAX)
    panel.data.source.value = "cdnow"
    assert panel.wait()
    assert "stale" in cell(panel, "pad_max", "events_per_s")[1]
    panel.data.source.value = "ml-100k"
    assert panel.wait()
    assert "stale" not in cell(panel, "pad_max", "events_per_s")[1]
    assert panel.measuring.controls.answer.text == ""  # it was about the lengths before


def test_what_is_measured_is_what_was_asked_for_last(panel) -> None:
    panel.measuring.controls.strategy.value = Strategy.BUCKET_BUDGET
    panel.settings.token_budget.field.value = "7777"
    panel.measuring.controls.button.click()  # at once: nobody waits for the answer
    assert panel.wait()
    assert [policy.token_budget for policy in panel.measuring._job.policies] == [7777]
    panel.measuring.controls.cancel.click()
    assert panel.measuring.wait()


def test_a_measurement_that_is_cancelled_before_it_starts_is_not_started(panel, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(panel.measuring, "_later", asked.append)
    controls = panel.measuring.controls
    controls.button.click()
    controls.button.click()
    assert len(asked) == 1
    controls.cancel.click()
    assert "cancelled: nothing was measured" in controls.answer.text
    assert (controls.button.disabled, controls.cancel.disabled) == (False, True)
    asked[0]()
    assert not panel.measuring._thread.running
    controls.button.click()
    asked[0]()  # of the one that was cancelled, which would measure what was shown then
    assert not panel.measuring._thread.running
    controls.cancel.click()
