"""Notebook 03's configuration, its rows, and the records that it keeps and reads again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.batching.strategies import Strategy
from labkit.cost.calibration import Calibration
from labkit.cost.devices import gpu
from labkit.cost.overheads import ASSUMED
from labkit.errors import DataFileError, DeviceError, GpuError, LabkitError, PolicyError
from labkit.experiments import calibrate, compare, compare_measured
from labkit.experiments.compare import Config, Result, run
from labkit.experiments.compare_records import Stored, Tell, by_policy
from labkit.experiments.compare_rows import fastest_first
from labkit.experiments.measure_job import Job, Progress, run_job
from labkit.experiments.measure_report import MeasureReport
from labkit.experiments.time_split import measured_split, modelled_split
from labkit.provenance import Origin
from tests.experiments.compare_cases import modelled, record, row

SMALL = {"preset": "cdnow", "sequences": 300, "seconds": 5.0, "rows": 64, "token_budget": 2048}


@pytest.fixture(scope="module")
def result() -> Result:
    """Measured in this process, not in a child."""

    def here(job: Job, tell: Tell) -> MeasureReport:
        events: list[object] = []
        once = replace(job, execution=replace(job.execution, epoch=True))  # whole, however slow the machine is
        run_job(once, events.append)
        for event in events:
            tell(event)  # type: ignore[arg-type]
        return MeasureReport.of([e for e in events if not isinstance(e, Progress)], job.data_note)  # type: ignore[misc]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_measured, "run_child", here)
        return run(Config(**SMALL, strategies="pad_batch, jagged, rnn_packed, bucket_graph"))


def test_what_is_counted_modelled_and_measured_is_one_plan(result: Result) -> None:
    for each in result.rows:
        assert each.audit is not None
        assert each.record is not None
        assert each.audit.sequences == 300
        if each.record.ok:
            figures = each.record.figures
            assert figures["slots"].value == each.audit.slots
            assert figures["batches"].value == each.audit.batches
            assert figures["slots"].origin is Origin.EXACT


def test_the_fastest_comes_first_and_what_does_not_run_says_why(result: Result) -> None:
    times = [each.modelled_time_s for each in result.rows[:3]]
    assert times == sorted(times, key=lambda t: t or 0)
    last = result.rows[-1]
    assert last.strategy is Strategy.RNN_PACKED
    assert "model din does not take the packed_sequence layout" in str(last.model_refusal)
    assert "model din does not take the packed_sequence layout" in str(last.measure_refusal)


def test_the_din_experiment_is_measured_in_the_same_run(result: Result) -> None:
    assert result.din is not None
    assert result.din.relative_measured()[0] == 1.0
    assert None not in result.din.relative_measured()


def test_a_stored_run_is_shown_again_as_recorded_with_its_own_settings(result: Result, tmp_path: Path) -> None:
    assert result.stored is not None
    path = result.stored.save(tmp_path / "records.json")
    again = run(Config(preset="ml-100k", rows=7, gpu="T4", records_file=str(path)))
    assert again.is_recorded
    assert (again.config.preset, again.config.rows, again.config.gpu) == ("cdnow", 64, "T4")
    assert {each.strategy for each in again.rows} == {each.strategy for each in result.rows}
    before = {each.strategy: each for each in result.rows}
    for each in again.rows:
        assert each.audit == before[each.strategy].audit
        assert each.measured_time_s == before[each.strategy].measured_time_s
        if each.record is not None and each.record.ok:
            figure = each.record.figures["epoch_s"]
            assert figure.origin is Origin.RECORDED
            assert "commit" in str(figure.reason)
    assert again.din is not None
    assert again.din.relative_measured() == result.din.relative_measured()  # type: ignore[union-attr]
    assert "recorded on" in again.finding


def test_settings_of_another_version_are_named(result: Result, tmp_path: Path) -> None:
    assert result.stored is not None
    path = replace(result.stored, config={**result.stored.config, "shards": 3}).save(tmp_path / "records.json")
    with pytest.raises(DataFileError, match=r"settings that this version does not know: .*shards"):
        run(Config(records_file=str(path)))


def test_a_card_without_a_data_sheet_is_not_calibrated_and_does_not_stop_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(device: str) -> None:
        raise GpuError("GPU 'RTX' is not in the table")

    monkeypatch.setattr(calibrate, "calibrate_here", unknown)
    monkeypatch.setattr(compare, "measured", lambda *_: None)
    found = run(Config(**SMALL, strategies="jagged", calibrate=True))  # type: ignore[arg-type]
    assert found.calibration == ("GPU 'RTX' is not in the table",)
    assert found.choice.overheads.source == "assumed"


def test_fitted_overheads_are_used_for_the_gpu_they_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = Calibration(replace(ASSUMED, launch_s=1e-6, source="fitted"), ())
    monkeypatch.setattr(calibrate, "calibrate_here", lambda device: calibrate.Calibrated(gpu("H100"), fitted))
    monkeypatch.setattr(compare, "measured", lambda *_: None)
    sources = {
        name: run(Config(**SMALL, strategies="jagged", calibrate=True, gpu=name)).choice.overheads.source  # type: ignore[arg-type]
        for name in ("H100", "T4")
    }
    assert sources == {"H100": "fitted", "T4": "assumed"}


def test_a_record_of_another_policy_is_not_shown(result: Result) -> None:
    assert result.report is not None
    other = row(Strategy.JAGGED).policy
    assert other is not None
    assert by_policy([other], result.report) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [("nope", "cannot read"), ("{}", "'lengths' is missing"), ("[]", "no record of a comparison")],
    ids=["no json", "nothing in it", "a list"],
)
def test_what_is_no_record_of_a_comparison_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(content)
    with pytest.raises(DataFileError, match=message):
        Config(records_file=str(path)).check_files()


def test_a_plain_measurement_names_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps({"strategies": [], "device": "cpu"}))
    with pytest.raises(DataFileError, match=r"'lengths' is missing. Use the records.json that notebook 03_compare"):
        Stored.load(path)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"model": "dinn"}, PolicyError, "din, sasrec, gru4rec, pooled, ctr"),
        ({"gpu": "H900"}, GpuError, "V100-16, V100-32, T4"),
        ({"device": "tpu"}, DeviceError, "use cpu, cuda or cuda:N, or None"),
        ({"strategies": "padmax"}, PolicyError, "pad_max, pad_recent"),
        ({"strategies": " , "}, PolicyError, "strategies is empty"),
        (
            {"model": "gru4rec", "strategies": "jagged, packed"},
            PolicyError,
            "model gru4rec does not take the jagged layout of strategy jagged",
        ),
        ({"seconds": 0.0}, PolicyError, "seconds must be a number above 0"),
        ({"sequences": 0}, PolicyError, "sequences must be 1 or more"),
        ({"max_length": 0}, PolicyError, "max_length"),
        ({"preset": "nope"}, DataFileError, "nope"),
    ],
    ids=lambda value: str(value)[:24] if isinstance(value, dict) else "",
)
def test_what_no_data_could_make_right_is_refused_at_once(
    settings: dict[str, object], error: type[LabkitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        Config(**settings)  # type: ignore[arg-type]


def test_strategies_are_named_with_commas_and_each_is_taken_once() -> None:
    config = Config(strategies=" jagged,pad_max , jagged")
    assert config.chosen() == (Strategy.JAGGED, Strategy.PAD_MAX)
    assert Config().chosen() == tuple(Strategy)


def test_without_a_device_nothing_is_measured() -> None:
    found = run(Config(**SMALL | {"device": None, "strategies": "jagged", "din": False}))  # type: ignore[arg-type]
    assert found.stored is None
    assert found.din is None
    assert found.rows[0].measure_refusal == "not measured: no device was asked for"


def test_rows_are_sorted_by_modelled_and_then_by_measured_time() -> None:
    slow = row(modelled=modelled(time_s=3.0))
    tie = row(modelled=modelled(time_s=2.0), record=record(epoch_s=9.0))
    fast = row(modelled=modelled(time_s=2.0), record=record(epoch_s=1.0))
    unknown = row(error="too wide")
    over = row(modelled=replace(modelled(time_s=0.5), fits=False))
    assert fastest_first([unknown, over, slow, tie, fast]) == (fast, tie, slow, over, unknown)


def test_what_does_not_fit_is_not_the_fastest(result: Result) -> None:
    first, second, *_ = (r for r in result.rows if r.modelled is not None and r.modelled_time_s is not None)
    assert first.modelled is not None
    over = replace(first, modelled=replace(first.modelled, fits=False))
    said = replace(result, rows=(over, second)).finding
    assert f"{second.strategy} is the only one that fits (" in said
    assert "is the fastest of" not in said


def test_a_measured_epoch_is_split_by_wait_and_slots() -> None:
    # 10 s, of which 2 wait; of the other 8 three quarters are padding
    split = measured_split(row(record=record(epoch_s=10.0, padding_ratio=0.75, loader_wait_share=0.2)))
    assert split is not None
    assert (split.useful_s, split.padding_s, split.gap_s) == pytest.approx((2.0, 6.0, 2.0))
    assert split.total_s == pytest.approx(10.0)
    assert "wait" in split.what


def test_on_a_gpu_the_gap_is_the_time_without_a_kernel() -> None:
    split = measured_split(row(record=record(epoch_s=10.0, host_gap_share=0.5, loader_wait_share=0.2)))
    assert split is not None
    assert (split.useful_s, split.padding_s, split.gap_s) == pytest.approx((5.0, 0.0, 5.0))
    assert "no kernel runs" in split.what


def test_there_is_no_split_without_a_time() -> None:
    assert measured_split(row()) is None
    assert measured_split(row(record=record(epoch_s=1.0))) is None  # neither gap nor wait is known
    assert modelled_split(row()) is None
    whole = modelled_split(row(modelled=modelled(useful_s=1.0, padding_s=2.0, gap_s=3.0)))
    assert whole is not None
    assert whole.total_s == 6.0
