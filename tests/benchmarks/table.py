"""Benchmarks as aligned lines of text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.benchmarks.model import Bar, Outcome

HEAD = ("what", "median", "spread", "n", "reference", "ratio", "bar", "verdict")
#: All columns but the first and the last are numbers.
_LEFT = (0, len(HEAD) - 1)


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """One line a benchmark under a head, then how each was measured, then what went wrong."""
    cells = [HEAD, *(_cells(o) for o in outcomes)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
    table = ["  ".join(_place(row[i], i, widths[i]) for i in range(len(HEAD))).rstrip() for row in cells]
    rule = "-" * max(map(len, table))
    notes = [f"{o.benchmark.name}: {o.error or (o.found.detail if o.found else '')}" for o in outcomes]
    missed = [o.benchmark.name for o in outcomes if not o.ok]
    end = f"missed: {', '.join(missed)}" if missed else f"all {len(outcomes)} bars met"
    return [table[0], rule, *table[1:], rule, *notes, end]


def _place(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column in _LEFT else cell.rjust(width)


def _cells(outcome: Outcome) -> tuple[str, ...]:
    found, what = outcome.found, f"{outcome.benchmark.name}: {outcome.benchmark.what}"
    verdict = "ok" if outcome.ok else "MISSED" if found else "BROKEN"
    if found is None:
        return (what, "-", "-", "0", "-", "-", bar_text(outcome.benchmark.bar), verdict)
    return (
        what,
        quantity(found.own.median, found.unit),
        "-" if found.own.spread is None else quantity(found.own.spread, found.unit),
        str(len(found.own.values)),
        "-" if found.reference is None else quantity(found.reference.median, found.unit),
        "-" if found.ratio is None else f"{found.ratio:.2f}x",
        bar_text(outcome.benchmark.bar),
        verdict,
    )


def bar_text(bar: Bar) -> str:
    sign = ">=" if bar.least else "<="
    return f"{sign} {bar.limit:g}x" if bar.unit is None else f"{sign} {quantity(bar.limit, bar.unit)}"


def quantity(value: float, unit: str) -> str:
    """Three significant digits, in the multiple of the unit that people read."""
    if unit == "bytes":
        return f"{value / 1e6:.3g} MB"
    if unit == "misfits":
        return f"{value:g} misfits"
    if unit != "s":
        raise ValueError(f"no way to write {unit!r}: use s, bytes or misfits")
    scale, name = next(((s, n) for s, n in ((1, "s"), (1e-3, "ms"), (1e-6, "us")) if abs(value) >= s), (1e-9, "ns"))
    return f"{value / scale:.0f} {name}" if abs(value / scale) >= 1000 else f"{value / scale:.3g} {name}"


def progress(text: str) -> None:
    """To stderr, so that the table on stdout stays a table."""
    print(text, file=sys.stderr, flush=True)
