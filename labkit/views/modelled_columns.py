"""The columns that a model adds to the strategies table, and with a GPU the time and what rules it."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


def modelled_text(found: Modelled | None, column: ModelledColumn) -> str:
    """The cell in plain text, with the mark of a modelled number."""
    text = None if found is None else column.text(found)
    return "-" if text is None else f"~{text}"


def best_of(columns: Sequence[ModelledColumn], found: Sequence[Modelled]) -> dict[str, float]:
    """Smallest value of each column in which less is better, where the strategies differ in it."""
    best = {}
    for column in columns:
        values = {value for m in found if (value := column.value(m)) is not None}
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
    why, kind = (
        html.escape(column.reason(found)),
        "best" if value is not None and best.get(column.name) == value else "",
    )
    data = html.escape(str(found.bound)) if value is None else repr(value)
    return (
        f'<td data-figure="{column.name}" data-value="{data}" class="{kind}" title="{why}">'
        f'{text}<sup class="{Origin.MODELLED}">{mark}</sup></td>'
    )
