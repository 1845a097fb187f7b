"""Each op against the bytes that it must move, and against the ways that torch has of doing the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from labkit.gpu_check.items.bandwidth import copy_bytes_per_s
from labkit.gpu_check.items.op_calls import OP_CALLS, OpCalls
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.ragged_data import Law
from labkit.gpu_check.runner import Case, Found

KEY = "ops"


def cases(lab: Lab) -> Sequence[Case]:
    """Every op on either law of lengths."""
    return [Case(f"{op}, {law}", partial(_timed, lab, op, law, make)) for law in Law for op, make in OP_CALLS.items()]


def _timed(lab: Lab, op: str, law: Law, make: Callable[[Lab, Law], OpCalls]) -> Found:
    calls = make(lab, law)
    own = lab.timed(calls.own)
    rate, peers = copy_bytes_per_s(lab.report), _peers(lab, calls.peers)
    best = min((p["median_s"] for p in peers.values() if "median_s" in p), default=None)
    floor_s = None if rate is None else calls.floor_bytes / rate
    found: dict[str, Any] = {
        "op": op,
        "lengths": str(law),
        "rows": calls.rows,
        "events": calls.events,
        "dim": lab.sizes.dim,
        **own,
        "floor_bytes": calls.floor_bytes,
        "floor_s": floor_s,
        "share_of_copy": None if floor_s is None else floor_s / own["median_s"],
        "peers": peers,
        "best_peer_s": best,
        "speedup": None if best is None else best / own["median_s"],
    }
    share, speedup = found["share_of_copy"], found["speedup"]
    parts = [f"{own['median_s'] * 1e3:.3f} ms"]
    parts += [] if share is None else [f"{100 * share:.0f} % of copy"]
    parts += [] if speedup is None else [f"{speedup:.2f} x the best of torch"]
    return found | {"shown": ", ".join(parts)}


def _peers(lab: Lab, peers: Mapping[str, Callable[[], object]]) -> dict[str, Any]:
    """Timings by name; one that torch cannot do here has the reason."""
    found: dict[str, Any] = {}
    for name, call in peers.items():
        try:
            found[name] = lab.timed(call)
        except Exception as error:  # not ours: what it cannot do is a result
            found[name] = {"reason": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
            if not lab.is_alive():
                raise
        lab.clear()
    return found
