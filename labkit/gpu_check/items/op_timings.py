"""Each op against the bytes that it must move, and against the ways that torch has of doing the same.

The op has all rows, and so have the ways of torch that have room for them; the others have fewer, and their times are
scaled by the events (or slots) and say so. Before the clock starts, all of them have given the same on some rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from labkit.gpu_check.items.bandwidth import copy_bytes_per_s
from labkit.gpu_check.items.op_calls import OPS, Op, OpCalls
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.ragged_data import Law, RaggedData
from labkit.gpu_check.runner import Case, Found
from labkit.gpu_check.same_results import compare

KEY = "ops"

_FLOAT = 4  # bytes

#: Of the free memory, for the op itself. What torch does may need several times as much, and has fewer rows if so.
_SHARE = 0.8

#: (B, L, D) and (T, D) arrays that the ways of torch hold at once, and the rows on which results are compared.
_PEER_RECTANGLES, _PEER_COPIES, _COMPARED_ROWS = 3.0, 4.0, 2000


def cases(lab: Lab) -> Sequence[Case]:
    """Every op on either law of lengths."""
    return [Case(f"{name}, {law}", partial(_timed, lab, name, law, op)) for law in Law for name, op in OPS.items()]


def _timed(lab: Lab, name: str, law: Law, op: Op) -> Found:
    few = min(_COMPARED_ROWS, _fitting(lab, law, _PEER_RECTANGLES, _PEER_COPIES, 0.5))
    compared = compare(lab, op.calls(lab, RaggedData(lab, law, few))) if op.is_like_peers else []
    data = RaggedData(lab, law, _fitting(lab, law, op.rectangles, op.copies, _SHARE))
    calls = op.calls(lab, data)
    own, rate = lab.timed(calls.own), copy_bytes_per_s(lab.report)
    peers = _peers(lab, law, op, data, calls)
    best = min((p["median_s"] for p in peers.values() if "median_s" in p), default=None)
    found: dict[str, Any] = {
        "op": name,
        "lengths": str(law),
        "rows": data.rows,
        "events": data.events,
        "dim": data.dim,
        **own,
        "floor_bytes": calls.floor_bytes,
        "floor_s": None if rate is None else calls.floor_bytes / rate,
        "share_of_copy": _share(calls.floor_bytes, rate, own["median_s"]),
        "gathered_bytes": calls.gathered_bytes,
        "share_of_copy_gathered": _share(calls.gathered_bytes, rate, own["median_s"]),
        "compared_with": compared,
        "peers": peers,
        "best_peer_s": best,
        "speedup": None if best is None else best / own["median_s"],
    }
    share, speedup = found["share_of_copy"], found["speedup"]
    parts = [f"{own['median_s'] * 1e3:.3f} ms"]
    parts += [] if share is None else [f"{100 * share:.0f} % of copy"]
    parts += [] if speedup is None else [f"{speedup:.2f} x the best of torch"]
    return found | {"shown": ", ".join(parts)}


def _fitting(lab: Lab, law: Law, rectangles: float, copies: float, share: float) -> int:
    """As many rows as this share of the free memory has room for, with so many arrays of each kind."""
    event = lab.sizes.dim * _FLOAT
    mean = (lab.sizes.longest + 1) / 2 if law is Law.UNIFORM else 0.06 * lab.sizes.longest
    return lab.fit(lab.sizes.rows, event * (rectangles * lab.sizes.longest + copies * mean), share)


def _share(floor_bytes: int | None, rate: float | None, median_s: float) -> float | None:
    """Of a copy's bandwidth."""
    return None if rate is None or floor_bytes is None else floor_bytes / rate / median_s


def _peers(lab: Lab, law: Law, op: Op, data: RaggedData, calls: OpCalls) -> dict[str, Any]:
    """Timings by name: of all rows where there is room, of fewer else."""
    found = {name: _attempt(lab, lambda call=call: call) for name, call in calls.peers.items()}  # type: ignore[misc]
    again = [name for name, entry in found.items() if entry.get("is_out_of_memory")]
    if not calls.padded and not again:
        return found
    fewer = min(data.rows, _fitting(lab, law, _PEER_RECTANGLES, _PEER_COPIES, 0.5))
    part = data if fewer == data.rows else RaggedData(lab, law, fewer)
    on_part = calls if part is data else op.calls(lab, part)
    for name in again:
        found[name] = _scaled(_attempt(lab, lambda name=name: on_part.peers[name]), part, data.events / part.events)  # type: ignore[misc]
    slots = data.rows * data.longest / (part.rows * part.longest)
    return found | {name: _scaled(_attempt(lab, make), part, slots) for name, make in on_part.padded.items()}


def _attempt(lab: Lab, prepare: Callable[[], Callable[[], object]]) -> dict[str, Any]:
    """A timing, or the reason why torch cannot do it here."""
    try:
        found = lab.timed(prepare())
    except Exception as error:  # not ours: what it cannot do is a result
        found = {"reason": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
        if isinstance(error, torch.OutOfMemoryError):
            found["is_out_of_memory"] = True
        if not lab.is_alive():
            raise
    lab.clear()
    return found


def _scaled(found: dict[str, Any], part: RaggedData, factor: float) -> dict[str, Any]:
    """The time of more rows than were timed, with what was."""
    if "median_s" not in found or factor == 1:
        return found
    times = {name: found[name] * factor for name in ("median_s", "spread_s")}
    return found | times | {"timed_s": found["median_s"], "timed_rows": part.rows, "scaled_by": factor}
