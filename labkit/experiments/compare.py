"""Notebook 03: every strategy with a model, counted, modelled for a GPU and measured here, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from labkit.cost.devices import gpu
from labkit.errors import CostError, DataFileError, GpuError
from labkit.experiments.compare_config import Config as Config
from labkit.experiments.compare_measured import measured
from labkit.experiments.compare_records import Stored, Tell, by_policy
from labkit.experiments.compare_rows import Compared, compared, fastest_first
from labkit.experiments.din_experiment import DinExperiment, din_experiment, din_policies
from labkit.experiments.histories import sampled_lengths
from labkit.experiments.measure_report import MeasureReport
from labkit.experiments.scores import score
from labkit.experiments.source import open_source
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model
from labkit.units import format_count, format_seconds


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """What was found.

    Attributes:
        config: what was asked; of a stored run with its data and settings.
        of_sequences: sequences of the data set; None where only those of a stored run are known.
        histogram: the lengths that everything here is about, sampled.
        choice: the model and the GPU.
        rows: the strategies, fastest first.
        din: the DIN experiment; None where it was left out.
        calibration: what the fit of the overheads left over, in lines; empty where it was left out.
        stored: the records, as they are saved; None where nothing was measured.
    """

    config: Config
    of_sequences: int | None
    histogram: LengthHistogram
    choice: ModelChoice
    rows: tuple[Compared, ...]
    din: DinExperiment | None
    calibration: tuple[str, ...]
    stored: Stored | None

    @property
    def report(self) -> MeasureReport | None:
        """The records of the strategies, with device and environment."""
        return None if self.stored is None else self.stored.compared

    @property
    def is_recorded(self) -> bool:
        """The records are those of an earlier run."""
        return self.config.records_file is not None

    @property
    def finding(self) -> str:
        """One sentence: the fastest strategy on the GPU and on the device, and what rules it."""
        said = []
        modelled = [row for row in self.rows if row.modelled_time_s is not None and row.fits is not False]
        if modelled:
            best, worst = modelled[0], modelled[-1]
            bound = "" if best.modelled is None else f", {best.modelled.bound}-bound"
            batches = 0 if best.audit is None else best.audit.batches
            steps = f" in {format_count(batches)} step{'' if batches == 1 else 's'}" if batches else ""
            place = "the only one" if len(modelled) == 1 else f"the fastest of {len(modelled)}"
            if any(row.fits is False for row in self.rows):
                place += " that fits" if len(modelled) == 1 else " that fit"
            against = "" if best is worst else f"; {worst.strategy} takes {format_seconds(worst.modelled_time_s or 0)}"
            said.append(
                f"Modelled on {self.config.gpu}, {best.strategy} is {place} "
                f"({format_seconds(best.modelled_time_s or 0)} an epoch{steps}{bound}{against})"
            )
        timed = sorted((row for row in self.rows if row.measured_time_s), key=lambda row: row.measured_time_s or 0)
        if timed and self.report is not None:
            best, worst = timed[0], timed[-1]
            against = (
                "" if best is worst else f" against {format_seconds(worst.measured_time_s or 0)} of {worst.strategy}"
            )
            said.append(
                f"{'recorded' if self.is_recorded else 'measured'} on {self.report.device}, it is {best.strategy} "
                f"({format_seconds(best.measured_time_s or 0)}{against})"
            )
        return "; ".join(said) + "." if said else "No strategy has a time: the table says why."


def run(config: Config, tell: Tell = lambda event: None) -> Result:
    """Count, model and measure every strategy on the same plans; a stored run is counted and modelled again.

    Args:
        config: what to compare.
        tell: called with progress and records while something is measured.

    Raises:
        LabkitError: data that cannot be read, a device that is not there.

    Cost: a second for counts and models; to measure, warm-up and ``seconds`` of each strategy and way.
    """
    if config.records_file is not None:
        return _from_stored(config, Stored.load(config.records_file))
    if config.lengths_file is not None:
        whole = open_source(config.lengths_file, user=config.user_column)
    else:
        whole = open_source(config.preset)
    histogram = LengthHistogram.from_lengths(sampled_lengths(whole, config.sequences, config.seed))
    choice, calibration = _calibrated(config)
    stored = None if config.device is None else measured(config, histogram, tell)
    return _result(config, whole.sequences, histogram, choice, calibration, stored)


def _from_stored(config: Config, stored: Stored) -> Result:
    own = {name: value for name, value in stored.config.items() if name not in ("gpu", "calibrate", "records_file")}
    try:
        as_then = replace(config, **own, calibrate=False)
    except TypeError:
        raise DataFileError(
            f"{str(config.records_file)!r} has settings that this version does not know: expected those of Config, got "
            f"{', '.join(own)}. Read it with the labkit that wrote it."
        ) from None
    return _result(as_then, None, stored.histogram, _choice(as_then), (), stored)


def _result(
    config: Config,
    of_sequences: int | None,
    histogram: LengthHistogram,
    choice: ModelChoice,
    calibration: tuple[str, ...],
    stored: Stored | None,
) -> Result:
    """Put counts, models and records together."""
    # as the child draws them from the same histogram: the plan that is counted is the plan that is measured
    lengths = sampled_lengths(histogram, histogram.sequences, config.seed)
    board = score(histogram, config.lineup, config.chosen(), choice)
    policies = [s.policy for s in board.scores if s.policy is not None]
    records = None if stored is None else by_policy(policies, stored.compared)
    rows = fastest_first([compared(s, lengths, config.seed, records) for s in board.scores])
    din = None
    if config.din:
        its = None if stored is None or stored.din is None else by_policy(din_policies(histogram).values(), stored.din)
        din = din_experiment(histogram, lengths, replace(choice, model=Model.DIN), config.seed, its)
    return Result(config, of_sequences, histogram, choice, rows, din, calibration, stored)


def _choice(config: Config) -> ModelChoice:
    return ModelChoice(config.model, gpu(config.gpu))


def _calibrated(config: Config) -> tuple[ModelChoice, tuple[str, ...]]:
    choice = _choice(config)
    if not config.calibrate or config.device is None:
        return choice, ()
    from labkit.experiments.calibrate import calibrate_here, residual_lines  # not at the top: it loads torch

    try:
        found = calibrate_here(config.device)
    except (CostError, GpuError) as error:  # a machine too busy for a line, a card without a data sheet
        return choice, (str(error),)
    lines = tuple(residual_lines(found.calibration))
    if choice.gpu is not None and found.device.name == choice.gpu.name:
        return replace(choice, overheads=found.calibration.overheads), (*lines, f"used for {choice.gpu.name}")
    return choice, (*lines, f"of {found.device.name}: the modelled {choice.title} keeps its assumed overheads")
