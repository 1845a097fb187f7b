"""The columns that a model adds to the strategies table, and with a GPU the time and what rules it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from labkit.batching.strategies import Strategy
from labkit.experiments.what_if_model import ModelChoice, Modelled
from labkit.provenance import Origin
from labkit.units import format_bytes, format_count, format_seconds, format_share
from labkit.views.badges import BADGES


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
        "bound",
        "what rules the largest part of the time: arithmetic, bytes, or starting kernels",
        "bound",
        lower_is_better=False,
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


def modelled_text(found: Modelled | None, column: ModelledColumn) -> str:
    """The cell in plain text, with the mark of a modelled number; a peak above the memory of the GPU ends in ``!``."""
    text = None if found is None else column.text(found)
    if found is None or text is None:
        return "-"
    return f"~{text}!" if is_above_memory(found, column.name) else f"~{text}"


def is_above_memory(found: Modelled | None, name: str) -> bool:
    """The figure is a peak that the GPU has no memory for."""
    return found is not None and found.fits is False and name == "peak_bytes"


def does_not_fit(found: Iterable[tuple[Strategy, Modelled | None]], choice: ModelChoice | None) -> list[str]:
    """A line on the strategies whose peak is above the memory of the GPU; none where there is none."""
    over = [(key, m) for key, m in found if is_above_memory(m, "peak_bytes")]
    if choice is None or choice.gpu is None or not over:
        return []
    name, memory = choice.gpu.name, format_bytes(choice.gpu.memory_bytes)
    keys = ", ".join(key for key, _ in over)
    return [f"! does not fit: the peak of {keys} is above the {memory} of {name}; the time is as if it had more memory"]


def columns_explained(choice: ModelChoice | None) -> list[str]:
    """What the columns mean, in one line; none without a model."""
    columns = modelled_columns(choice)
    return ["; ".join(f"{column.header}: {column.tip}" for column in columns)] if columns else []


def best_of(columns: Sequence[ModelledColumn], found: Sequence[Modelled]) -> dict[str, float]:
    """Smallest value of each column in which less is better, where the strategies that fit differ in it."""
    best = {}
    for column in columns:
        values = {value for m in found if m.fits is not False and (value := column.value(m)) is not None}
        if column.lower_is_better and len(values) > 1:
            best[column.name] = min(values)
    return best


def modelled_cell(found: Modelled | None, column: ModelledColumn, best: dict[str, float]) -> str:
    """The cell in HTML: the number with its badge, or a dash; how it came to be, or why not, on hovering."""
    text = None if found is None else column.text(found)
    if found is None or text is None:
        why = "there are no figures" if found is None else column.reason(found)
        return f'<td data-figure="{column.name}" class="none" title="{html.escape(why)}">–</td>'
    value = column.value(found)
    mark, _ = BADGES[Origin.MODELLED]
    why = html.escape(column.reason(found))
    is_best = found.fits is not False and value is not None and best.get(column.name) == value
    over = is_above_memory(found, column.name)
    kind = "loss" if over else "best" if is_best else ""
    data = html.escape(str(found.bound)) if value is None else repr(value)
    return (
        f'<td data-figure="{column.name}" data-value="{data}" class="{kind}" title="{why}">'
        f'{text}{"!" if over else ""}<sup class="{Origin.MODELLED}">{mark}</sup></td>'
    )
