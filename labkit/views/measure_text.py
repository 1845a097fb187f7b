"""A measurement as plain text: a row a strategy, a mark on every number that says where it comes from, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.batching.strategies import Strategy
from labkit.bench.record import Record
from labkit.experiments.measure_report import MeasureReport
from labkit.provenance import Origin
from labkit.units import format_bytes, format_count, format_seconds, format_share
from labkit.views.what_if_text import MARKS, aligned

_ABSENT = "-"

# header, figure, how it is written
_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("events/s", "events_per_s", format_count),
    ("epoch", "epoch_s", format_seconds),
    ("error", "epoch_error_s", format_seconds),
    ("step", "median_s", format_seconds),
    ("spread", "spread_s", format_seconds),
    ("n", "n", format_count),
    ("padding", "padding_ratio", format_share),
    ("peak", "peak_bytes", format_bytes),
    ("launches", "launches", format_count),
    ("kernels", "kernels", format_count),
    ("utilization", "utilization", format_share),
    ("wait", "loader_wait_share", format_share),
)
_AGAINST = "x pad_max"
_HEADERS = {name: header for header, name, _ in _COLUMNS}
_ON_CPU = {"launches": "ops"}  # a CPU launches nothing
# what is said once below the table; the rest is in the JSON
_EXPLAINED = ("epoch_s", "peak_bytes", "launches", "kernels", "utilization", "loader_wait_share")


def measure_text(report: MeasureReport) -> str:
    """The whole answer: what ran where, a row a strategy that ran, legend, notes, and why the others did not run."""
    ran = [record for record in report.strategies if record.timed]
    lines = [f"{report.model} on {report.device}", report.data, ""]
    if ran:
        headers = _HEADERS | (_ON_CPU if report.device.startswith("cpu") else {})
        explained = _explained(headers["launches"])
        lines += [*_table(ran, headers), "", _legend(ran, report.settings.get("seed")), explained]
        lines += [*_notes(ran, headers), *_eager(ran), *_losses(ran), *_compiled(ran)]
    lines += [f"{r.strategy}: not measured: {r.reason['epoch_s']}" for r in report.strategies if not r.timed]
    return "\n".join(lines)


def _table(ran: list[Record], names: Mapping[str, str]) -> list[str]:
    headers = ["strategy", *(names[name] for _, name, _ in _COLUMNS)]
    rows = [[str(r.strategy), *(_cell(r, name, write) for _, name, write in _COLUMNS)] for r in ran]
    base = next((r.events_per_s for r in ran if r.strategy == Strategy.PAD_MAX), None)
    if base and len(ran) > 1:  # pad_max beside itself says nothing
        headers.insert(2, _AGAINST)
        for row, record in zip(rows, ran, strict=True):
            rate = record.events_per_s
            row.insert(2, _ABSENT if rate is None else f"{_mark(record, 'events_per_s')}{rate / base:.2f}")
    return aligned([headers, *rows])


def _cell(record: Record, name: str, write: Callable[[float], str]) -> str:
    value = getattr(record, name) if name in record.figures else None
    return _ABSENT if value is None else _mark(record, name) + write(value)


def _mark(record: Record, name: str) -> str:
    return MARKS[record.provenance[name]][0]


def _legend(ran: list[Record], seed: int | None) -> str:
    shown = {record.provenance[name] for record in ran for _, name, _ in _COLUMNS if name in record.provenance}
    texts = [text for origin, (_, text) in MARKS.items() if origin in shown and origin is not Origin.EXACT]
    plan = "the plan of this epoch" if seed is None else f"the epoch planned with seed {seed}"
    exact = [f"no mark: exact of {plan}"] if Origin.EXACT in shown else []
    return ";  ".join([*texts, *exact])


def _explained(counted: str) -> str:
    """What the heads mean."""
    return (
        f"epoch, {counted}, kernels: of an epoch; step: median of the n timed steps, without the wait for its batch; "
        "spread: distance of their quartiles; events: real ones"
    )


def _eager(ran: list[Record]) -> list[str]:
    """Strategies that are replayed as CUDA graphs, where there are none."""
    name = "graph_replays"
    graphs = [r for r in ran if r.strategy == Strategy.BUCKET_GRAPH and name in r.figures]
    return [f"{r.strategy} ran eagerly: {r.reason[name]}" for r in graphs if r.figures[name].value is None]


def _notes(ran: list[Record], headers: Mapping[str, str]) -> list[str]:
    """What a number alone would not say; a reason that several strategies share is said once."""
    said: dict[tuple[str, str], list[str]] = {}
    for record in ran:
        for name in _EXPLAINED:
            if reason := record.reason.get(name):
                said.setdefault((headers.get(name, name), reason), []).append(record.strategy)
    all_of_them = len(ran)
    return [
        f"{header}: {reason.removeprefix(f'{header}: ')}"
        if len(who) == all_of_them
        else f"{', '.join(who)} {header}: {reason}"
        for (header, reason), who in said.items()
    ]


def _losses(ran: list[Record]) -> list[str]:
    """The loss in mixed precision beside float32; nothing where float32 was measured."""
    return [
        f"{r.strategy} loss: {r.loss:.6g}, in float32 {r.loss_float32:.6g}, {format_share(r.loss_difference)} apart"
        for r in ran
        if r.figures.get("loss_difference") is not None and r.loss_difference is not None
    ]


def _compiled(ran: list[Record]) -> list[str]:
    """Recompiles, where something was compiled."""
    return [
        f"{r.strategy} recompiles: {r.recompiles} ({r.reason['recompiles']})"
        for r in ran
        if r.figures.get("recompiles") is not None and r.recompiles is not None
    ]
