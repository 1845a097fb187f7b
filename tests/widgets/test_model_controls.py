from __future__ import annotations

import re

import pytest

from labkit.cost.devices import GPUS, gpu
from labkit.errors import CostError
from labkit.experiments.tune_buckets import Config
from labkit.experiments.what_if_model import ModelChoice
from labkit.models.registry import Model
from labkit.widgets.model_controls import ModelControls
from labkit.widgets.tuning_panel import TuningPanel


@pytest.fixture
def panel(tmp_path):
    made = TuningPanel(Config(), out=tmp_path / "tuned.json")
    yield made
    made.close()


def figures(panel: TuningPanel, strategy: str) -> dict[str, str]:
    row = re.search(rf'data-strategy="{strategy}">(.*?)</tr>', panel.table.value)
    return dict(re.findall(r'data-figure="(\w+)" data-value="([^"]+)"', row[1]))


def traced(panel: TuningPanel) -> None:
    assert panel.wait()
    panel._traces.wait()
    assert panel.wait()


def test_both_menus_offer_none_and_all_there_are() -> None:
    calls: list[int] = []
    controls = ModelControls(None, lambda: calls.append(1))
    assert [value for _, value in controls.model.options] == ["", *Model]
    assert [value for _, value in controls.gpu.options] == ["", *GPUS]
    assert controls.choice is None
    assert controls.gpu.disabled
    controls.model.value = Model.DIN
    controls.gpu.value = "L4"
    assert controls.choice == ModelChoice(Model.DIN, gpu("L4"))
    assert len(calls) == 2
    controls.take(None)
    assert (controls.choice, len(calls)) == (None, 2)


def test_a_model_adds_modelled_figures_once_it_is_traced(panel) -> None:
    assert "modelled: din" not in panel.table.value
    panel.models.model.value = Model.DIN
    traced(panel)
    assert "modelled: din, training" in panel.table.value
    assert "tracing" not in panel.table.value
    before = figures(panel, "bucket_budget")
    assert float(before["launches"]) > 0
    assert "time_s" not in before
    assert panel.figures.pareto.layout.xaxis.title.text.startswith("modelled launches")
    panel.models.gpu.value = "H100"
    assert panel.wait()
    after = figures(panel, "bucket_budget")
    assert float(after["time_s"]) > 0
    assert after["bound"] in ("compute", "bandwidth", "launch")
    panel.models.model.value = ""
    assert panel.wait()
    assert "launches" not in figures(panel, "bucket_budget")
    assert panel.figures.pareto.layout.xaxis.title.text.startswith("batches")


def test_while_it_is_traced_the_table_says_so_and_the_edges_move(panel, monkeypatch) -> None:
    monkeypatch.setattr(panel._traces, "ready", lambda choice: False)
    panel.models.model.value = Model.SASREC
    panel.edges._rows[2].field.value = "150"
    assert panel.wait()
    assert "modelled: sasrec, training: tracing …" in panel.table.value
    assert panel.editor.edges[2] == 150


def test_a_model_that_cannot_be_traced_says_why_in_the_table(panel, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise CostError("no rule for aten.sort")

    monkeypatch.setattr("labkit.experiments.background_traces.step_cost", broken)
    panel.models.model.value = Model.CTR
    traced(panel)
    assert "modelled: ctr, training: no rule for aten.sort" in panel.table.value
