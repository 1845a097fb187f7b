"""One line about a data set: what its lengths look like."""

from __future__ import annotations

import html
from dataclasses import dataclass

from labkit.lengths.histogram import LengthHistogram
from labkit.units import format_count, format_share

_GAP = "margin-right:16px"


def summary_items(histogram: LengthHistogram) -> list[tuple[str, str]]:
    """Pairs of name and text: sequences, events, mean, quantiles, longest, Gini, empty sequences."""
    p50, p95, p99 = histogram.quantiles([0.5, 0.95, 0.99])
    items = [
        ("sequences", format_count(histogram.sequences)),
        ("events", format_count(histogram.events)),
        ("mean", f"{histogram.mean:.1f}" if histogram.mean < 10_000 else format_count(histogram.mean)),
        ("P50", format_count(p50)),
        ("P95", format_count(p95)),
        ("P99", format_count(p99)),
        ("longest", format_count(histogram.max)),
        ("Gini", f"{histogram.gini:.2f}"),
    ]
    if histogram.values[0] == 0:
        items.append(("empty", format_share(int(histogram.counts[0]) / histogram.sequences)))
    return items


@dataclass(frozen=True, slots=True)
class Summary:
    """A data set in one line: HTML in a notebook, text elsewhere.

    Attributes:
        histogram: of its lengths.
        name: what it is called.
    """

    histogram: LengthHistogram
    name: str

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<span style="{_GAP};white-space:nowrap"><span style="opacity:.65">{label}</span> <b>{text}</b></span>'
            for label, text in summary_items(self.histogram)
        )
        title = f'<b style="{_GAP};white-space:nowrap">{html.escape(self.name)}</b>'
        return f'<div class="labkit-summary" style="line-height:1.7">{title}{cells}</div>'

    def __repr__(self) -> str:
        return f"{self.name}: " + " · ".join(f"{name} {text}" for name, text in summary_items(self.histogram))
