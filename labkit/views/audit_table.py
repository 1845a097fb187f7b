"""An audit on the page: its figures, its buckets, and what it says in words; HTML in a notebook, text elsewhere."""

from __future__ import annotations

import html
from dataclasses import dataclass

from labkit.batching.audit import Audit, BucketAudit
from labkit.units import format_count, format_share
from labkit.views.plain_table import PlainTable

_COUNTED = "all figures are exact: counted in the plan, with the lengths"
_BUCKET_HEADER = (
    "bucket",
    "width",
    "users",
    "batches",
    "slots",
    "padding",
    "ghost rows",
    "users cut",
    "events lost",
    "users dropped",
    "users repeated",
)


@dataclass(frozen=True, slots=True)
class AuditTable:
    """An audit to look at.

    Attributes:
        audit: what was counted.
    """

    audit: Audit

    @property
    def figures(self) -> PlainTable:
        """One figure a row, with its share, or why it is none."""
        return PlainTable(("figure", "value", "share"), tuple(_figures(self.audit)), _COUNTED)

    @property
    def buckets(self) -> PlainTable | None:
        """One bucket a row; None for strategies that have none."""
        return PlainTable(_BUCKET_HEADER, tuple(map(_bucket, self.audit.buckets))) if self.audit.buckets else None

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Kind and text of each sentence: faults first, then warnings, then the advice."""
        faults = tuple(("fault", text) for text in self.audit.faults)
        return (*faults, *(("warning", text) for text in self.audit.warnings), ("advice", self.audit.advice))

    def _repr_html_(self) -> str:
        marks = {"fault": "✗ fault", "warning": "! warning", "advice": "→ advice"}  # a sign beside the colour
        said = "".join(
            f'<li data-kind="{kind}"><b>{marks[kind]}</b> {html.escape(text)}</li>' for kind, text in self.words
        )
        buckets = "" if self.buckets is None else self.buckets._repr_html_()
        return (
            f'<div class="labkit-audit">{self.figures._repr_html_()}{buckets}'
            f'<ul style="list-style:none;padding:0;margin:6px 0">{said}</ul></div>'
        )

    def __repr__(self) -> str:
        """Aligned text."""
        tables = [repr(table) for table in (self.figures, self.buckets) if table is not None]
        return "\n\n".join([*tables, "\n".join(f"{kind}: {text}" for kind, text in self.words)])


def audit_table(audit: Audit) -> AuditTable:
    """An audit as a table for a notebook or a terminal."""
    return AuditTable(audit)


def _figures(a: Audit) -> list[tuple[str, str, str]]:
    ranks = "all" if len(a.ranks) == a.world_size else ", ".join(map(str, a.ranks))
    why = a.reason
    dropped = None if a.sequences_dropped is None else a.sequences_dropped / a.sequences
    return [
        ("ranks", f"{ranks} of {a.world_size}", ""),
        ("batches", format_count(a.batches), ""),
        ("shapes", format_count(a.shapes), ""),
        ("rows a batch", _none_or(a.rows_min) if a.rows_min == a.rows_max else f"{a.rows_min} .. {a.rows_max}", ""),
        ("slots", format_count(a.slots), ""),
        ("padding", format_count(a.slots - a.kept_events), format_share(a.padding_ratio)),
        ("ghost rows", format_count(a.ghost_rows), ""),
        ("users seen", format_count(a.sequences_seen), format_share(a.coverage)),
        ("users seen once", format_count(a.sequences_once), format_share(a.sequences_once / a.sequences)),
        ("users cut", format_count(a.sequences_truncated), format_share(a.sequences_truncated / a.sequences)),
        (
            "users dropped",
            _none_or(a.sequences_dropped),
            why["sequences_dropped"] if dropped is None else format_share(dropped),
        ),
        ("events lost", format_count(a.events_lost), format_share(a.lost_share)),
        ("users repeated", format_count(a.sequences_repeated), format_share(a.sequences_repeated / a.sequences)),
        ("events repeated", format_count(a.events_repeated), format_share(a.events_repeated / max(a.events, 1))),
        ("above the token budget", _none_or(a.overshoot), why.get("overshoot", "")),
        ("batches above it", format_count(a.batches_over_budget), ""),
        ("straggler, a step", f"{a.straggler:.3f}", ""),
        ("straggler, the epoch", f"{a.epoch_straggler:.3f}", ""),
        ("lag-1 correlation", "none" if a.lag1 is None else f"{a.lag1:.3f}", why.get("lag1", "")),
    ]


def _bucket(b: BucketAudit) -> tuple[str, ...]:
    return (
        "above" if b.edge is None else f"<= {b.edge}",
        _none_or(b.width),
        format_count(b.sequences),
        format_count(b.batches),
        format_count(b.slots),
        format_share(b.padding_ratio),
        format_count(b.ghost_rows),
        format_count(b.sequences_truncated),
        format_count(b.events_lost),
        _none_or(b.sequences_dropped),
        format_count(b.sequences_repeated),
    )


def _none_or(value: int | None) -> str:
    return "none" if value is None else format_count(value)
