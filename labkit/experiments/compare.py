"""Notebook 03: every strategy with a model, counted, modelled for a GPU and measured here, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from labkit.batching.fields import choice as one_of
from labkit.batching.fields import flag, whole_number
from labkit.batching.policy import DEFAULT_ROWS, DEFAULT_TOKEN_BUDGET, BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.bench.record import Record
from labkit.cost.devices import gpu
from labkit.errors import CostError, DeviceError, PolicyError
from labkit.experiments.compare_records import Stored, Tell, by_policy, run_child
from labkit.experiments.compare_rows import Compared, compared, fastest_first
from labkit.experiments.din_experiment import DinExperiment, din_experiment, din_policies
from labkit.experiments.execution import Execution
from labkit.experiments.histories import sampled_lengths
from labkit.experiments.lineup import DEFAULT_BUCKETS, Lineup
from labkit.experiments.measure_job import Job
from labkit.experiments.measure_report import MeasureReport
from labkit.experiments.scores import score
from labkit.experiments.source import check_data, open_source, require_source
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH
from labkit.models.registry import Model, model_spec
from labkit.units import format_seconds, shown

ALL = "all"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that notebook 03 can be asked for; its parameters cell, one to one.

    Attributes:
        preset: name of a data set.
        lengths_file: path of a file of lengths or events, which wins over the preset; None: no file.
        user_column: column that names the user, where the file is an event table.
        sequences: most sequences; more are sampled down to it, with the longest among them.
        model: key of the model table.
        gpu: what the modelled figures are for.
        device: what is measured: ``cpu``, ``cuda`` or ``cuda:N``; None: nothing is.
        seconds: of a strategy, after its warm-up.
        strategies: their keys, with commas between them, or ``all``.
        rows: sequences a batch in the strategies with fixed rows.
        token_budget: slots (padded) or events (jagged) a batch.
        buckets: most buckets.
        max_length: truncation cap; ``pad_max`` never cuts. None: no cap.
        din: rebuild the DIN experiment.
        calibrate: fit the overheads of the device; they are used where it is the GPU that is modelled.
        records_file: ``records.json`` of an earlier run, whose data and settings then win over those here.
        seed: of samples, plans and weights.
    """

    preset: str = "industrial_20m"
    lengths_file: str | None = None
    user_column: str | None = None
    sequences: int = 20_000
    model: Model = Model.DIN
    gpu: str = "H100"
    device: str | None = "cpu"
    seconds: float = 2.0
    strategies: str = ALL
    rows: int = DEFAULT_ROWS
    token_budget: int = DEFAULT_TOKEN_BUDGET
    buckets: int = DEFAULT_BUCKETS
    max_length: int | None = 512
    din: bool = True
    calibrate: bool = False
    records_file: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no data could make right, before any is read.

        Raises:
            PolicyError, LengthsError: a value out of its range; GpuError, DeviceError: a GPU or device that is not
                known; DataFileError: a preset that does not exist.
        """
        object.__setattr__(self, "model", model_spec(self.model).model)
        object.__setattr__(self, "gpu", gpu(self.gpu).name)
        for name in ("sequences", "rows", "token_budget", "buckets"):
            whole_number(name, getattr(self, name))
        whole_number("seed", self.seed, least=0)
        if self.max_length is not None:
            whole_number("max_length", self.max_length, most=MAX_LENGTH)
        for name in ("din", "calibrate"):
            flag(name, getattr(self, name))
        Execution(seconds=self.seconds)
        if self.device is not None and self.device != "cpu" and self.device.partition(":")[0] != "cuda":
            raise DeviceError(f"device {shown(self.device)} does not exist: use cpu, cuda or cuda:N, or None.")
        self.chosen()
        check_data(self.preset, self.lengths_file, self.user_column)

    def check_files(self) -> None:
        """Look whether files and the device are there, without reading or using them.

        Raises:
            DataFileError: a file is not, or is no record of a comparison; DeviceError: the device is not.
        """
        if self.records_file is not None:
            Stored.load(self.records_file)
            return
        if self.lengths_file is not None:
            require_source(self.lengths_file)
        if self.device not in (None, "cpu"):
            from labkit.experiments.device_choice import open_device  # not at the top: it loads torch

            open_device(str(self.device))

    def chosen(self) -> tuple[Strategy, ...]:
        """The strategies that are compared.

        Raises:
            PolicyError: one that does not exist, or none at all.
        """
        if self.strategies.strip() == ALL:
            return tuple(Strategy)
        names = [name.strip() for name in self.strategies.split(",") if name.strip()]
        if not names:
            raise PolicyError(f"strategies is empty: use all, or some of {', '.join(Strategy)}, with commas.")
        return tuple(dict.fromkeys(one_of("strategies", name, Strategy) for name in names))

    @property
    def lineup(self) -> Lineup:
        """The settings that all strategies share."""
        return Lineup(buckets=self.buckets, token_budget=self.token_budget, rows=self.rows, max_length=self.max_length)


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
        modelled = [row for row in self.rows if row.modelled_time_s is not None]
        if modelled:
            best, worst = modelled[0], modelled[-1]
            bound = "" if best.modelled is None else f", {best.modelled.bound}-bound"
            said.append(
                f"Modelled on {self.config.gpu}, {best.strategy} is the fastest of {len(modelled)} "
                f"({format_seconds(best.modelled_time_s or 0)} an epoch{bound}; {worst.strategy} takes "
                f"{format_seconds(worst.modelled_time_s or 0)})"
            )
        measured = sorted((row for row in self.rows if row.measured_time_s), key=lambda row: row.measured_time_s or 0)
        if measured and self.report is not None:
            best, worst = measured[0], measured[-1]
            said.append(
                f"{'recorded' if self.is_recorded else 'measured'} on {self.report.device}, it is {best.strategy} "
                f"({format_seconds(best.measured_time_s or 0)} against {format_seconds(worst.measured_time_s or 0)} "
                f"of {worst.strategy})"
            )
        return "; ".join(said) + "." if said else "No strategy fits these lengths with these settings: see the table."


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
    stored = None if config.device is None else _measured(config, histogram, tell)
    return _result(config, whole.sequences, histogram, choice, calibration, stored)


def _from_stored(config: Config, stored: Stored) -> Result:
    own = {name: value for name, value in stored.config.items() if name not in ("gpu", "calibrate", "records_file")}
    as_then = replace(config, **own, calibrate=False)
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
    except CostError as error:  # a machine that is too busy for a line
        return choice, (str(error),)
    lines = tuple(residual_lines(found.calibration))
    if choice.gpu is not None and found.device.name == choice.gpu.name:
        return replace(choice, overheads=found.calibration.overheads), (*lines, f"used for {choice.gpu.name}")
    return choice, (*lines, f"of {found.device.name}: the modelled {choice.title} keeps its assumed overheads")


def _measured(config: Config, histogram: LengthHistogram, tell: Tell) -> Stored | None:
    """Run the strategies and the three ways of DIN in a child; a policy of both is run once."""
    board = score(histogram, config.lineup, config.chosen())
    own = [s.policy for s in board.scores if s.policy is not None and s.what_if is not None]
    ways = list(din_policies(histogram).values()) if config.din else []
    if not own:
        return None
    if config.model is Model.DIN or not ways:
        both = _child(config, config.model, [*own, *ways], histogram, tell)
        din = _part(both, ways) if ways else None
        return Stored(_plain(config), histogram, _part(both, own), din)
    compared_now = _child(config, config.model, own, histogram, tell)
    return Stored(_plain(config), histogram, compared_now, _child(config, Model.DIN, ways, histogram, tell))


def _child(
    config: Config, model: Model, policies: Iterable[BatchPolicy], histogram: LengthHistogram, tell: Tell
) -> MeasureReport:
    execution = Execution(seconds=config.seconds, seed=config.seed)
    once = tuple(dict.fromkeys(policies))
    return run_child(Job(histogram, once, model, str(config.device), execution, histogram.sequences), tell)


def _part(report: MeasureReport, policies: list[BatchPolicy]) -> MeasureReport:
    """The records of some of the policies."""
    found: dict[BatchPolicy, Record] = by_policy(policies, report)
    return replace(report, strategies=tuple(found[policy] for policy in policies))


def _plain(config: Config) -> dict[str, Any]:
    return {**asdict(config), "model": str(config.model)}
