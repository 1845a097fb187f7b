"""The columns that a model adds to the strategies table, and with a GPU the time and what rules it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labkit.experiments.what_if_model import ModelChoice, Modelled
from labkit.units import format_bytes, format_count, format_seconds, format_share


@dataclass(frozen=True, slots=True)
class ModelledColumn:
    """One column.

    Attributes:
        header: a few words.
        tip: what it means, shown when hovered.
        name: of the figure, or ``bound``.
        write: how its number is written.
        needs_gpu: it is there only where a GPU is chosen.
        lower_is_better: the smallest value of the column is marked.
    """

    header: str
    tip: str
    name: str
    write: Callable[[float], str] = format_count
    needs_gpu: bool = True
    lower_is_better: bool = True

    def value(self, found: Modelled) -> float | None:
        """The number that is compared; None where there is none, and for words."""
        return None if self.name == "bound" else found.figures[self.name].value

    def text(self, found: Modelled) -> str | None:
        """What the cell says; None where it has nothing to say."""
        if self.name == "bound":
            return None if found.bound is None else str(found.bound)
        value = found.figures[self.name].value
        return None if value is None else self.write(value)

    def reason(self, found: Modelled) -> str:
        """How the cell came to be, or why it is empty."""
        return found.bound_reason if self.name == "bound" else found.figures[self.name].reason or ""


_COLUMNS = (
    ModelledColumn("time", "an epoch", "time_s", format_seconds),
    ModelledColumn(
        "busy",
        "share of the time in which a kernel runs (time-active)",
        "utilization",
        format_share,
        lower_is_better=False,
    ),
    ModelledColumn(
        "bound", "what most of the time goes to: arithmetic, bytes, or starting kernels", "bound", lower_is_better=False
    ),
    ModelledColumn("peak", "most bytes of tensors in a step", "peak_bytes", format_bytes, needs_gpu=False),
    ModelledColumn("launches", "host-side launches of an epoch", "launches", needs_gpu=False),
    ModelledColumn("kernels", "device kernels of an epoch", "kernels", needs_gpu=False, lower_is_better=False),
)


def modelled_columns(choice: ModelChoice | None) -> tuple[ModelledColumn, ...]:
    """The columns for what was chosen: none without a model, no times without a GPU."""
    if choice is None:
        return ()
    return tuple(column for column in _COLUMNS if choice.gpu is not None or not column.needs_gpu)
