"""Execution: how a measurement runs, apart from what it runs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from labkit.batching.fields import choice, flag, whole_number
from labkit.errors import PolicyError
from labkit.units import shown

MOST_WORKERS = 1024
#: Sequences that are made up at most, unless more are asked for; a larger histogram is sampled down to them. It is here
#: and not beside their makers, which load torch.
DEFAULT_SEQUENCES = 20_000
DEFAULT_SECONDS = 5.0


class Amp(StrEnum):
    """Automatic mixed precision: what most of the arithmetic is done in; parameters stay float32."""

    BF16 = "bf16"
    FP16 = "fp16"  # with loss scaling


@dataclass(frozen=True, slots=True)
class Execution:
    """How a strategy is run.

    Attributes:
        seconds: no step is begun after so long; at least one step is timed. Short epochs are repeated, each whole.
        epoch: measure a whole epoch, however long it takes.
        train: forward, backward and optimizer; False: forward alone, in inference mode.
        warm_up: steps that come before, the largest batch of the epoch first.
        amp: mixed precision; None: float32.
        compile: the model goes through ``torch.compile``.
        workers: processes that fetch and collate; 0: the loop does it itself.
        pin_memory: batches in page-locked memory; None: where the model runs on a GPU.
        prefetch: batches that each worker is ahead.
        pad_on_device: padded batches travel jagged and are padded on the device.
        seed: of the plan, the samples and the model.

    Raises:
        PolicyError: a field out of its range.
    """

    seconds: float = DEFAULT_SECONDS
    epoch: bool = False
    train: bool = True
    warm_up: int = 2
    amp: Amp | None = None
    compile: bool = False
    workers: int = 0
    pin_memory: bool | None = None
    prefetch: int = 2
    pad_on_device: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check and normalize every field."""
        seconds = self.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise PolicyError(f"seconds must be a number above 0: got {shown(seconds)}.")
        for name in ("epoch", "train", "compile", "pad_on_device"):
            self._set(name, flag(name, getattr(self, name)))
        self._set("warm_up", whole_number("warm_up", self.warm_up))
        self._set("workers", whole_number("workers", self.workers, least=0, most=MOST_WORKERS))
        self._set("prefetch", whole_number("prefetch", self.prefetch))
        self._set("seed", whole_number("seed", self.seed, least=0))
        if self.amp is not None:
            self._set("amp", choice("amp", self.amp, Amp))
        if self.pin_memory is not None:
            self._set("pin_memory", flag("pin_memory", self.pin_memory))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def mode(self) -> str:
        """Train or inference, and the precision, in words."""
        return f"{'training' if self.train else 'inference'}, {self.amp or 'float32'}"

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain JSON types."""
        return {name: str(v) if isinstance(v, StrEnum) else v for name, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Execution:
        """The inverse of ``to_dict``; unknown names are refused."""
        unknown = sorted(set(data) - {field.name for field in fields(cls)})
        if unknown:
            raise PolicyError(f"there is no way of running called {', '.join(unknown)}: use the fields of Execution.")
        return cls(**data)
