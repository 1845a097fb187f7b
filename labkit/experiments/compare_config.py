"""What notebook 03 can be asked for, and what of it is refused before any data is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labkit.batching.fields import choice, flag, whole_number
from labkit.batching.policy import DEFAULT_ROWS, DEFAULT_TOKEN_BUDGET
from labkit.batching.strategies import Strategy
from labkit.cost.devices import gpu
from labkit.errors import DeviceError, PolicyError
from labkit.experiments.compare_records import Stored
from labkit.experiments.execution import Execution
from labkit.experiments.lineup import DEFAULT_BUCKETS, Lineup
from labkit.experiments.source import check_data, require_source
from labkit.lengths.validate import MAX_LENGTH
from labkit.models.registry import Model, check_layout, model_spec, takes_strategy
from labkit.units import shown

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
            PolicyError, LengthsError: a value out of its range, or only strategies that the model does not take;
                GpuError, DeviceError: a GPU or device that is not known; DataFileError: a preset that does not exist.
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
        self._refuse_if_none_is_taken()
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

    def _refuse_if_none_is_taken(self) -> None:
        chosen = self.chosen()
        if self.records_file is None and not any(takes_strategy(self.model, strategy) for strategy in chosen):
            check_layout(self.model, chosen[0])  # raises

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
        return tuple(dict.fromkeys(choice("strategies", name, Strategy) for name in names))

    @property
    def lineup(self) -> Lineup:
        """The settings that all strategies share."""
        return Lineup(buckets=self.buckets, token_budget=self.token_budget, rows=self.rows, max_length=self.max_length)

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain JSON types."""
        return {**asdict(self), "model": str(self.model)}
