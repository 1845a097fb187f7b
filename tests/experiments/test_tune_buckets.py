from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labkit.batching.plan import plan_epoch
from labkit.config import TunedConfig
from labkit.errors import DataFileError, GpuError, LabkitError, PolicyError
from labkit.experiments.tune_buckets import GENERATED, Config, load, run, save_tuned
from labkit.models.registry import Model
from labkit.views.tune_buckets import save_report, summary, table


def test_ml_100k_with_the_defaults_finds_the_reference_edges():
    result = run(Config())
    assert result.board.edges.edges == (35, 66, 112, 168, 236, 307, 414, 737)
    assert round(result.board[result.config.strategy].what_if.padding_ratio, 4) == 0.1810
    assert result.finding.startswith(
        "bucket_budget leaves 18.1% padding where padding to the longest leaves 85.6%: 5.7x"
    )


def test_generated_lengths_follow_the_parameters():
    h = load(Config(preset=GENERATED, sequences=1000, longest=64, alpha=2.0))
    assert (h.sequences, h.max <= 64, int(h.values[0])) == (1000, True, 1)


def test_a_file_wins_over_the_preset(tmp_path):
    path = tmp_path / "lengths.npy"
    np.save(path, np.array([1, 2, 3]))
    assert load(Config(lengths_file=str(path))).sequences == 3


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("strategy", "bucket", "strategy 'bucket' does not exist: use one of pad_max, pad_recent"),
        ("edges_by", "best", "edges_by 'best' does not exist: use one of optimal, quantile, quantile_p95"),
    ],
)
def test_unknown_keys_name_those_that_exist(field, value, message):
    with pytest.raises(PolicyError, match=message):
        Config(**{field: value})


def test_alpha_of_one_is_refused():
    with pytest.raises(LabkitError, match="alpha"):
        run(Config(preset=GENERATED, alpha=1.0))


def test_saved_report_loads_and_plans_the_same_batches(tmp_path):
    result = run(Config())
    tuned_path, page = save_report(result, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["strategies.html", "tuned.json"]
    tuned = TunedConfig.load(tuned_path)
    lengths = result.histogram.expand()
    before = plan_epoch(lengths, result.board[result.config.strategy].policy, seed=3, epoch=1)
    after = plan_epoch(lengths, tuned.batch_policy, seed=3, epoch=1)
    np.testing.assert_array_equal(before.order, after.order)
    np.testing.assert_array_equal(before.batch_offsets, after.batch_offsets)
    text = page.read_text(encoding="utf-8")
    assert "bucket_budget leaves 18.1% padding" in text
    assert '<script src="http' not in text  # the page works offline


def test_nothing_is_written_for_a_strategy_that_does_not_fit(tmp_path):
    result = run(Config(token_budget=100))
    with pytest.raises(
        PolicyError, match=r"bucket_budget cannot be exported: bucket width .* is above token_budget 100"
    ):
        save_report(result, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert "does not fit" in result.finding


def test_a_folder_whose_parent_is_missing_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"folder .*no does not exist"):
        save_report(run(Config()), tmp_path / "no" / "out")


def test_views_have_text_forms():
    result = run(Config())
    assert repr(summary(result)).startswith("ml-100k: sequences 943 · events 100 k")
    assert "bucket_budget" in repr(table(result))
    json.dumps(result.board[result.config.strategy].policy.to_dict())


def test_a_preset_is_looked_at_only_where_no_file_wins_over_it():
    Config(lengths_file="later.csv", preset="nope")
    Config(preset="ML_100k")
    with pytest.raises(DataFileError, match=r"^no preset 'nope': presets are cdnow, "):
        Config(preset="nope")


RESULT = run(Config())


def export(path):
    return save_tuned(RESULT.histogram, RESULT.board[RESULT.config.strategy], path)


def refused(path):
    with pytest.raises(DataFileError) as caught:
        export(path)
    return str(caught.value)


def test_an_export_makes_at_most_one_folder_and_knows_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert export("~/new/tuned.json") == tmp_path / "new" / "tuned.json"
    assert export("~/new/tuned.json") == tmp_path / "new" / "tuned.json"  # its own file is replaced
    TunedConfig.load("~/new/tuned.json")


def test_an_export_overwrites_nothing_else(tmp_path):
    (tmp_path / "lengths.csv").write_text("1,2\n")
    assert refused(tmp_path / "lengths.csv") == (
        f"'{tmp_path}/lengths.csv' is there and is no tuned configuration, so it is not overwritten: "
        "choose another name."
    )
    assert (tmp_path / "lengths.csv").read_text() == "1,2\n"


def test_an_export_into_what_is_no_folder_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file" / "x.json") == (
        f"'{tmp_path}/file' is a file, not a folder: 'x.json' cannot be written there."
    )
    assert refused(tmp_path / "file" / "a" / "x.json") == (
        f"folder '{tmp_path}/file/a' does not exist, so 'x.json' cannot be written: create it first."
    )
    assert refused(tmp_path / ("x" * 300) / "x.json") == (
        f"cannot write to '{tmp_path}/{'x' * 300}': File name too long."
    )
    assert refused("a\0b/x.json") == r"cannot write to 'a\x00b': embedded null byte."

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert refused(tmp_path / "new" / "x.json") == f"cannot make folder '{tmp_path}/new': Permission denied."
    monkeypatch.setattr(Path, "stat", refuse)
    assert refused("s/new/x.json") == "cannot write to 's': Permission denied."


def test_a_model_and_a_gpu_are_checked_at_once_and_their_figures_are_in_the_table() -> None:
    config = Config(model="din", gpu="nvidia h100")
    assert (config.model, config.gpu) == (Model.DIN, "H100")
    assert "busy" in repr(table(run(config)))
    with pytest.raises(PolicyError, match="model 'dim' does not exist: use one of din, sasrec, gru4rec, pooled, ctr"):
        Config(model="dim")
    with pytest.raises(GpuError, match=r"GPU 'H1000' is not in the table: use one of V100-16, .*, B200"):
        Config(model="din", gpu="H1000")
    with pytest.raises(PolicyError, match="gpu H100 needs a model to run there: set model to one of din"):
        Config(gpu="H100")
