"""Notebook 01: choose buckets and a token budget for one data set, and export what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labkit.batching.fields import choice, whole_number
from labkit.batching.policy import DEFAULT_ROWS, DEFAULT_TOKEN_BUDGET
from labkit.batching.strategies import Strategy
from labkit.config import TunedConfig
from labkit.config.reading import check_tuned_target
from labkit.cost.devices import gpu
from labkit.errors import DataFileError, PolicyError
from labkit.experiments.lineup import DEFAULT_BUCKETS, EdgesBy, Lineup
from labkit.experiments.scores import Score, Scoreboard, score
from labkit.experiments.source import check_data, open_source, require_source
from labkit.experiments.what_if_model import ModelChoice
from labkit.files import PathKind, expanded, kind_of, reason_of
from labkit.lengths import generate
from labkit.lengths.components import PowerLaw
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.validate import MAX_LENGTH
from labkit.models.registry import Model

#: The name of the data set that is generated from ``alpha``, ``sequences`` and ``longest``.
GENERATED = "generated"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that notebook 01 can be asked for; its parameters cell, one to one.

    Attributes:
        preset: name of a data set, or ``generated``.
        lengths_file: path of a file of lengths or events, which wins over the preset; None: no file.
        user_column: column that names the user, where the file is an event table.
        alpha: exponent of the generated power law, > 1.
        sequences: generated sequences.
        longest: longest generated length.
        buckets: most buckets.
        edges_by: ``optimal``, ``quantile`` or ``quantile_p95``.
        token_budget: slots (padded) or events (jagged) a batch.
        rows: sequences a batch in the strategies with fixed rows.
        max_length: truncation cap; None: no cap.
        length_multiple: what padded widths are rounded up to.
        model: whose figures are modelled, a key of the table of models; None: lengths alone.
        gpu: for which GPU, a name of the table of GPUs; None: launches and memory alone.
        strategy: the one that is exported.
    """

    preset: str = "ml-100k"
    lengths_file: str | None = None
    user_column: str | None = None
    alpha: float = 1.5
    sequences: int = 100_000
    longest: int = 4096
    buckets: int = DEFAULT_BUCKETS
    edges_by: EdgesBy = EdgesBy.OPTIMAL
    token_budget: int = DEFAULT_TOKEN_BUDGET
    rows: int = DEFAULT_ROWS
    max_length: int | None = None
    length_multiple: int = 1
    model: Model | None = None
    gpu: str | None = None
    strategy: Strategy = Strategy.BUCKET_BUDGET

    def __post_init__(self) -> None:
        """Accept enums as their keys; refuse what no data could make right, before any is read.

        Raises:
            PolicyError, LengthsError: a value out of its range; DataFileError: a preset that does not exist;
            GpuError: a GPU that is not in the table.
        """
        object.__setattr__(self, "edges_by", choice("edges_by", self.edges_by, EdgesBy))
        object.__setattr__(self, "strategy", choice("strategy", self.strategy, Strategy))
        if self.model is not None:
            object.__setattr__(self, "model", choice("model", self.model, Model))
        if self.gpu is not None:
            object.__setattr__(self, "gpu", gpu(self.gpu).name)
            if self.model is None:
                raise PolicyError(f"gpu {self.gpu} needs a model to run there: set model to one of {', '.join(Model)}.")
        for name in ("buckets", "token_budget", "rows", "sequences"):
            whole_number(name, getattr(self, name))
        for name in ("longest", "length_multiple", "max_length"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), most=MAX_LENGTH)
        PowerLaw(alpha=self.alpha, max_length=self.longest)
        check_data(None if self.preset == GENERATED else self.preset, self.lengths_file, self.user_column)

    def check_files(self) -> None:
        """Look whether the file of lengths is there, without reading it.

        Raises:
            DataFileError: it is not, or the system does not let us look.
        """
        if self.lengths_file is not None:
            require_source(self.lengths_file)

    @property
    def lineup(self) -> Lineup:
        """The settings that all strategies share."""
        return Lineup(
            buckets=self.buckets,
            edges_by=self.edges_by,
            rows=self.rows,
            token_budget=self.token_budget,
            max_length=self.max_length,
            length_multiple=self.length_multiple,
        )

    @property
    def choice(self) -> ModelChoice | None:
        """The model and the GPU whose figures are added; None without a model."""
        return None if self.model is None else ModelChoice(self.model, None if self.gpu is None else gpu(self.gpu))


@dataclass(frozen=True, slots=True)
class Result:
    """What was found.

    Attributes:
        config: what was asked.
        histogram: the lengths.
        board: the edges and the scores of every strategy.
    """

    config: Config
    histogram: LengthHistogram
    board: Scoreboard

    def save(self, folder: str | Path) -> Path:
        """Write the chosen strategy as ``tuned.json``; see ``save_tuned``."""
        return save_tuned(self.histogram, self.board[self.config.strategy], Path(folder) / "tuned.json")

    @property
    def finding(self) -> str:
        """One sentence: the padding of the chosen strategy against padding everything to the longest."""
        chosen, naive = self.board[self.config.strategy].what_if, self.board[Strategy.PAD_MAX].what_if
        if chosen is None or naive is None or not chosen.slots:
            return f"{self.config.strategy} does not fit these lengths with these settings; the table says why."
        return (
            f"{self.config.strategy} leaves {chosen.padding_ratio:.1%} padding where padding to the longest leaves "
            f"{naive.padding_ratio:.1%}: {naive.slots / chosen.slots:.1f}x fewer slots, "
            f"{chosen.events_lost / max(1, self.histogram.events):.1%} of the events lost."
        )


def load(config: Config) -> LengthHistogram:
    """The lengths that a config names, counted.

    Raises:
        LabkitError: a file or preset that cannot be read, or a law that cannot be drawn from.
    """
    if config.lengths_file is not None:
        return open_source(config.lengths_file, user=config.user_column)
    if config.preset != GENERATED:
        return open_source(config.preset)
    return LengthHistogram.from_lengths(
        generate.power_law(config.sequences, alpha=config.alpha, max_length=config.longest)
    )


def run(config: Config) -> Result:
    """Load the lengths, find the edges, score every strategy; one that does not fit says so in its row.

    Raises:
        LabkitError: data that cannot be read.
    """
    histogram = load(config)
    return Result(config=config, histogram=histogram, board=score(histogram, config.lineup, choice=config.choice))


def save_tuned(histogram: LengthHistogram, chosen: Score, path: str | Path) -> Path:
    """Write a scored strategy as a tuned configuration for a training job.

    Args:
        histogram: the lengths that it was scored on.
        chosen: the score of the strategy to export.
        path: of the JSON file, ``~`` is the home folder; its folder is made if only the last part of it is missing.

    Returns:
        The path.

    Raises:
        PolicyError: the strategy does not fit these lengths; DataFileError: a folder that is not there or cannot be
            written to, or a file in the way that is no tuned configuration.
    """
    if chosen.policy is None or chosen.what_if is None:
        raise PolicyError(f"{chosen.strategy} cannot be exported: {chosen.error}")
    target = Path(expanded(path))
    folder = target.parent
    above = kind_of(folder.parent, verb="write to")
    if above is None:
        raise DataFileError(f"folder {folder.parent} does not exist: create it, or choose another place.")
    is_new = above is PathKind.FOLDER and kind_of(folder, verb="write to") is None
    if not is_new:
        check_tuned_target(target)
    tuned = TunedConfig.from_policy(histogram, chosen.policy)
    if is_new:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataFileError(f"cannot make folder {str(folder)!r}: {reason_of(error)}.") from error
    return tuned.save(target)
