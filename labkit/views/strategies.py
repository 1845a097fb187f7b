"""Notebook 02 on the page."""

from __future__ import annotations

from labkit.batching.strategies import Strategy
from labkit.experiments.budget_rule import BudgetUse
from labkit.experiments.strategies import Planned, Result
from labkit.units import format_count, format_share
from labkit.views.cap_figure import cap_figure, side_figure
from labkit.views.dataset_summary import Summary
from labkit.views.notebook_figure import NotebookFigure
from labkit.views.plain_table import PlainTable
from labkit.views.training_figure import loss_figure, noise_figure

#: A correlation of fewer batches says nothing.
_FEW_BATCHES = 30


def summary(result: Result) -> Summary:
    """The data set in one line."""
    return Summary(result.histogram, result.config.lengths_file or result.config.preset)


def cap_curves(result: Result) -> NotebookFigure:
    """Users cut and events lost against the cap."""
    return NotebookFigure(cap_figure(result.caps), "users cut and events lost against the cap")


def cap_sides(result: Result) -> NotebookFigure:
    """What each side of the cut never shows."""
    return NotebookFigure(side_figure(result.caps), "latest events seen, by the side that is kept")


def planned_table(result: Result) -> PlainTable:
    """Every strategy planned for real, counted from the arrays of its plan."""
    header = (
        "strategy",
        "padding",
        "slots",
        "batches",
        "shapes",
        "ghost rows",
        "users cut",
        "events lost",
        "overshoot",
    )
    return PlainTable(
        (*header, "lag-1"),
        tuple(_planned_row(p) for p in result.planned),
        "exact: counted in the plan of one epoch; lag-1: correlation of neighbouring batches' longest rows, "
        f"where there are {_FEW_BATCHES} batches or more",
    )


def advice(result: Result) -> str:
    """What the audit advises somebody who pads to the longest of each batch today."""
    today = next(p for p in result.planned if p.strategy is Strategy.PAD_BATCH)
    return f"pad_batch today? {today.audit.advice}" if today.audit is not None else str(today.error)


def budget_table(result: Result) -> PlainTable:
    """The rule of thumb beside the hard budgets."""
    header = ("way", "rows", "batches", "median slots", "P95", "most", "over budget", "overshoot", "padding")
    budget = format_count(result.config.token_budget)
    return PlainTable(
        header, tuple(map(_budget_row, result.budgets)), f"exact: one epoch planned, budget {budget} slots"
    )


def gradient_noise(result: Result) -> NotebookFigure:
    """Noise of the gradient under each order."""
    return NotebookFigure(noise_figure(result.orders), "noise of the gradient under each order of the data")


def loss_curves(result: Result) -> NotebookFigure:
    """Held-out loss under each order."""
    return NotebookFigure(loss_figure(result.orders), "held-out loss under each order of the data")


def _budget_row(use: BudgetUse) -> tuple[str, ...]:
    return (
        use.name,
        "" if use.rows is None else format_count(use.rows),
        format_count(use.batches),
        format_count(use.median_slots),
        format_count(use.p95_slots),
        format_count(use.most_slots),
        format_share(use.over_budget_share),
        format_share(use.overshoot),
        format_share(use.padding_ratio),
    )


def _planned_row(planned: Planned) -> tuple[str, ...]:
    a = planned.audit
    if a is None:
        return (str(planned.strategy), f"does not fit: {planned.error}", *[""] * 8)
    return (
        str(planned.strategy),
        format_share(a.padding_ratio),
        format_count(a.slots),
        format_count(a.batches),
        format_count(a.shapes),
        format_count(a.ghost_rows),
        format_share(a.truncated_share or 0.0),
        format_share(a.lost_share),
        "no budget" if a.overshoot is None else format_count(a.overshoot),
        "" if a.lag1 is None or a.batches < _FEW_BATCHES else f"{a.lag1:+.2f}",
    )
