"""The tables of the kernel notebook: requests by regime, registers and occupancy by architecture, time."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.experiments.kernel_counts import THREAD_PER_SEQUENCE, Counted, KernelCounts
from labkit.experiments.kernel_time import KernelTime
from labkit.gpu.resources import Resources
from labkit.provenance import Figure
from labkit.units import format_bytes, format_count, format_seconds
from labkit.views.badges import BADGES
from labkit.views.plain_table import PlainTable

_WHO = {
    "short": "short: a group of lanes a row",
    "medium": "medium: a warp a row",
    "long": "long: a block a row",
    "giant": "giant: several blocks a row",
    "all rows": "all rows",
    THREAD_PER_SEQUENCE: "compared: a thread a sequence (one feature)",
}
_CARDS = {
    "sm_75": "Turing: T4",
    "sm_80": "Ampere: A100",
    "sm_90": "Hopper: H100, H200",
    "sm_100": "Blackwell: B200",
    "sm_120": "Blackwell: RTX 50",
}


def counts_table(counts: KernelCounts) -> PlainTable:
    """Requests to global memory, regime by regime, and those of a thread a sequence."""
    return PlainTable(
        ("rows", "sequences", "events", "requests", "lanes of 32", "sectors / ideal", "bank passes / least"),
        tuple(_part(part) for part in counts.parts),
        "modelled: requests of warps, counted on a CPU in lockstep on a sample of your lengths; "
        "the ratios are to the same words side by side, and to what the bytes need: 1.00 is perfect. "
        "The CPU's compiler may split an access to shared memory that NVRTC keeps whole: passes are an upper bound",
    )


def _part(part: Counted) -> tuple[str, ...]:
    return (
        _WHO[part.name],
        format_count(part.rows),
        format_count(part.events),
        format_count(part.requests),
        _number(part.lanes_per_request, ".1f"),
        _number(part.sectors_per_ideal, ".2f"),
        _number(part.passes_per_least, ".2f"),
    )


def _number(value: float | None, spec: str) -> str:
    return "–" if value is None else format(value, spec)


def resources_table(resources: Mapping[str, Mapping[str, Resources]]) -> PlainTable:
    """Every float32 kernel on every architecture: registers, occupancy, and what keeps more blocks from fitting."""
    kernels = dict.fromkeys(name for found in resources.values() for name in found if not _narrow(name))
    rows = tuple((name, *(_taken(found.get(name)) for found in resources.values())) for name in kernels)
    header = ("kernel", *(f"{arch} {_CARDS.get(arch, '')}".strip() for arch in resources))
    note = (
        "exact: registers a thread · occupancy, the share of a multiprocessor's warps that fit, and what keeps more "
        "from fitting. 16-bit storage is compiled for sm_90 and in kernels/resources.json"
    )
    return PlainTable(header, rows, note)


def _narrow(name: str) -> bool:
    return "<f16" in name or "<bf16" in name


def _taken(taken: Resources | None) -> str:
    if taken is None:
        return "–"
    local = f" · {taken.stack_bytes} B local" if taken.stack_bytes else ""
    return f"{taken.registers} · {taken.occupancy:.0%} ({taken.limit}){local}"


def time_table(time: KernelTime) -> PlainTable:
    """The time of a batch, and the floor that its bytes set."""
    rows = [
        ("time on this machine", _figure(time.time_s), time.device or "", time.time_s.reason or ""),
        ("spread (quartiles)", _figure(time.spread_s), time.device or "", time.spread_s.reason or ""),
        ("floor of the bytes", _figure(time.floor_s), f"{time.gpu}, data sheet", time.floor_s.reason or ""),
        ("bytes at the least", _figure(time.bytes_moved), "any", "each input and output once"),
    ]
    rows += [
        (f"recorded, {one.lengths} lengths", _figure(one.time_s), "", one.time_s.reason or "") for one in time.recorded
    ]
    if not time.recorded:
        rows.append(("recorded", "–", "", "no recorded run has this op: `make gpu-check` on a GPU makes one"))
    if time.time_s.value and time.floor_s.value and time.device and time.gpu in time.device:
        rows.append(("floor / time", f"{time.floor_s.value / time.time_s.value:.0%}", time.device, "1 is the roof"))
    return PlainTable(
        (f"{time.call}, {format_count(time.rows)} sequences, {format_count(time.events)} events", "", "GPU", "how"),
        tuple(rows),
    )


def _figure(figure: Figure) -> str:
    if figure.value is None or figure.origin is None:
        return "–"
    text = format_bytes(figure.value) if figure.unit == "bytes" else format_seconds(figure.value)
    return f"{text} {BADGES[figure.origin][1].partition(':')[0]}"
