"""What-if and tuning results as plain text: aligned, never cut to a terminal's width, a mark on what is no fact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import WhatIf
from labkit.experiments.tune import Found
from labkit.experiments.what_if_run import Scored
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Origin
from labkit.units import counted, format_share
from labkit.views.modelled_columns import columns_explained, does_not_fit, modelled_columns, modelled_text
from labkit.views.pack_line import pack_line

#: The mark in front of a number, and what the legend says of it; an exact number has none.
MARKS = {
    Origin.EXACT: ("", "no mark: exact, arithmetic on these lengths"),
    Origin.MODELLED: ("~", "~ modelled"),
    Origin.MEASURED: ("*", "* measured on this device"),
    Origin.RECORDED: ("^", "^ recorded"),
}

# header, field whose origin the number carries
_COLUMNS = (
    ("padding", "padding_ratio"),
    ("slots", "slots"),
    ("batches", "batches"),
    ("users cut", "sequences_truncated"),
    ("left out", "sequences_dropped"),
    ("events lost", "events_lost"),
    ("shapes", "shapes"),
    ("ghost rows", "ghost_rows"),
    ("largest batch", "largest_batch_slots"),
)


def what_if_text(scored: Scored) -> str:
    """The whole answer: data set, edges, a row a strategy, legend and notes."""
    lines = [summary_line(scored.histogram), *_edge_lines(scored), "", *_table(scored), ""]
    return "\n".join([*lines, *_legend(scored), *_model_lines(scored), *_notes(scored)])


def tune_text(found: Found, out: str) -> str:
    """What was found, both losses, and where it was written."""
    w, policy = found.what_if, found.what_if.policy
    cut = f"{_count(w.sequences_truncated)} users cut ({format_share(w.truncated_share)})"
    lost = f"{_count(w.events_lost)} events lost ({format_share(w.lost_share)})"
    cap = "no cap" if policy.max_length is None else f"cap {policy.max_length}"
    lines = [
        summary_line(found.histogram),
        f"bucket edges {_list(found.edges.edges)} ({len(found.edges)} of at most {found.limits.max_buckets} buckets)",
        f"{cap}: {cut}, {lost}, allowed {format_share(found.limits.max_events_lost)} of the events",
        f"padding {w.padding_ratio:.2%}, {_count(w.slots)} slots in {_batches(w.batches)}",
        f"token budget {_count(policy.token_budget)}, largest batch {_count(w.largest_batch_slots)} slots",
        *([found.edges.note] if found.limits.charge_per_bucket and found.edges.note else []),
        f"written to {out}",
    ]
    return "\n".join(lines)


def summary_line(histogram: LengthHistogram) -> str:
    """The data set in one line."""
    p50, p95, p99 = histogram.quantiles([0.5, 0.95, 0.99])
    return (
        f"{counted(histogram.sequences, 'sequence')}, {counted(histogram.events, 'event')}: mean {histogram.mean:.2f}, "
        f"P50 {p50:.10g}, P95 {p95:.10g}, P99 {p99:.10g}, max {_count(histogram.max)}"
    )


def _edge_lines(scored: Scored) -> list[str]:
    edges = scored.edges
    if edges is None:
        return []
    given = scored.lineup.bucket_edges is not None
    weighed = "" if scored.lineup.edge_cost == "slots" else f" for {scored.lineup.edge_cost}"
    line = f"bucket edges {_list(edges.edges)} ({'given' if given else f'{scored.lineup.edges_by}{weighed}'})"
    widths = [] if edges.widths is None else [f"bucket widths {_list(edges.widths)}"]
    return [line, *widths]


def _table(scored: Scored) -> list[str]:
    columns = modelled_columns(scored.choice)
    rows = [["strategy", *(header for header, _ in _COLUMNS), *(column.header for column in columns)]]
    for number, w in enumerate(scored.what_ifs):
        added = [] if scored.modelled is None else [modelled_text(scored.modelled[number], c) for c in columns]
        rows.append([str(w.policy.strategy), *_cells(w, scored.histogram), *added])
    return aligned(rows)


def _cells(w: WhatIf, histogram: LengthHistogram) -> list[str]:
    texts = {
        "padding_ratio": f"{w.padding_ratio:.2%}",
        "sequences_truncated": _with_share(w.sequences_truncated, histogram.sequences),
        "events_lost": _with_share(w.events_lost, histogram.events),
    }
    return [MARKS[w.provenance[name]][0] + texts.get(name, _count(getattr(w, name))) for _, name in _COLUMNS]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _legend(scored: Scored) -> list[str]:
    shown = {w.provenance[name] for w in scored.what_ifs for _, name in _COLUMNS}
    if scored.modelled is not None:
        shown.add(Origin.MODELLED)
    return [";  ".join(text for origin, (_, text) in MARKS.items() if origin in shown)] if shown else []


def _model_lines(scored: Scored) -> list[str]:
    """What was modelled, and which strategies the model does not take: each reason once."""
    if scored.choice is None or scored.modelled is None:
        return []
    said: dict[str, list[str]] = {}
    for w, found in zip(scored.what_ifs, scored.modelled, strict=True):
        kernels = found.figures["kernels"]
        if kernels.value is None and kernels.reason is not None:
            said.setdefault(kernels.reason, []).append(str(w.policy.strategy))
    overheads = f"; overheads {scored.choice.overheads.source}" if scored.choice.gpu else ""
    strategies = (w.policy.strategy for w in scored.what_ifs)
    return [
        f"modelled: {scored.choice.title}{overheads}",
        *columns_explained(scored.choice),
        *does_not_fit(zip(strategies, scored.modelled, strict=True), scored.choice),
        *(f"{', '.join(who)}: {why}" for why, who in said.items()),
    ]


def _notes(scored: Scored) -> list[str]:
    """What a number alone would not say; a reason that several strategies share is said once."""
    said: dict[str, list[str]] = {}
    headers = {name: header for header, name in _COLUMNS}
    for w in scored.what_ifs:
        for name, reason in w.reason.items():
            if name in headers:
                said.setdefault(reason, []).append(f"{w.policy.strategy} {headers[name]}")
    notes = [f"{', '.join(where)}: {reason}" for reason, where in said.items()]
    if scored.edges is not None and scored.edges.note:
        notes.append(scored.edges.note)
    notes += [f"{w.policy.strategy}: {line}" for w in scored.what_ifs if (line := pack_line(w))]
    notes += [_over_budget(w.policy, w.batches_over_budget) for w in scored.what_ifs if w.batches_over_budget]
    return notes


def _over_budget(policy: BatchPolicy, batches: int) -> str:
    are = "is" if batches == 1 else "are"
    rows = f"{counted(batches, 'batch')} of a single row"
    return f"{policy.strategy}: {rows} {are} above the token budget {_count(policy.token_budget)}"


def _with_share(part: float, whole: int) -> str:
    return f"{_count(part)} ({format_share(part / whole if whole else 0.0)})"


def _count(value: float) -> str:
    """Every digit of a count, one more of an expectation."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _batches(number: float) -> str:
    return f"{_count(number)} {'batch' if number == 1 else 'batches'}"


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
