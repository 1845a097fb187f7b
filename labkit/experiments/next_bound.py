"""next_bound: what rules the time of a policy, and which change would let something else rule. All modelled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from labkit.batching.policy import BatchPolicy, PadTo
from labkit.batching.strategies import STRATEGIES, Layout, Strategy
from labkit.cost.devices import Precision
from labkit.cost.step_time import Bound
from labkit.experiments.compare_rows import scored_policy
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram

#: How much larger batches are tried.
FACTORS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Move:
    """One change and what comes of it.

    Attributes:
        what: the change.
        batches: of an epoch then.
        bound: what rules then.
        time_s: an epoch then.
        peak_bytes: largest batch then.
        fits: that is within the memory of the GPU.
    """

    what: str
    batches: float
    bound: Bound
    time_s: float
    peak_bytes: float
    fits: bool


@dataclass(frozen=True, slots=True)
class NextBound:
    """What rules, and what would have to change.

    Attributes:
        now: as it is.
        moves: changes, each by itself; the last of ``larger batches`` is the first that lets something else rule.
        note: what was tried in vain; empty where larger batches got there.
    """

    now: Move
    moves: tuple[Move, ...]
    note: str


def next_bound(policy: BatchPolicy, histogram: LengthHistogram, choice: ModelChoice) -> NextBound | None:
    """Try larger batches, a CUDA graph and tensor cores; None where the policy has no modelled time.

    Cost: one what-if and model for each change, some milliseconds.
    """
    now = _move("as it is", policy, histogram, choice)
    if now is None:
        return None
    moves, note = _larger_batches(now, policy, histogram, choice)
    if policy.spec.layout is Layout.PADDED and policy.strategy is not Strategy.BUCKET_GRAPH and policy.bucket_edges:
        graph = replace(policy, strategy=Strategy.BUCKET_GRAPH, pad_to=PadTo.EDGE, static_shapes=None)
        moves += _known(_move("each bucket as a CUDA graph (bucket_graph)", graph, histogram, choice))
    if choice.gpu is not None and Precision.TF32 in choice.gpu.tensor_flops and choice.precision is Precision.FLOAT32:
        quick = replace(choice, precision=Precision.TF32)
        moves += _known(_move("matrix products in tf32", policy, histogram, quick))
    return NextBound(now, tuple(moves), note)


def _larger_batches(
    now: Move, policy: BatchPolicy, histogram: LengthHistogram, choice: ModelChoice
) -> tuple[list[Move], str]:
    """Twice as large, and the first size at which something else rules; or why there is none."""
    moves: list[Move] = []
    if now.batches <= 1:
        return moves, "an epoch is one batch already: only more data would make it larger"
    for factor in FACTORS:
        what = f"batches {factor} times as large ({_sizes(policy, factor)})"
        move = _move(what, _larger(policy, factor), histogram, choice)
        if move is None or not move.fits:
            return moves, f"batches {factor} times as large do not fit"
        if factor == FACTORS[0] or move.bound is not now.bound:
            moves.append(move)
        if move.bound is not now.bound:
            return moves, ""
    return moves, f"batches {FACTORS[-1]} times as large are still ruled by {now.bound}"


def _known(move: Move | None) -> list[Move]:
    return [] if move is None else [move]


def _move(what: str, policy: BatchPolicy, histogram: LengthHistogram, choice: ModelChoice) -> Move | None:
    scored = scored_policy(policy, histogram, choice)
    found = scored.modelled
    if scored.what_if is None or found is None or found.bound is None or choice.gpu is None:
        return None
    time, peak = found.figures["time_s"].value, found.figures["peak_bytes"].value
    if time is None or peak is None:
        return None
    return Move(what, scored.what_if.batches, found.bound, time, peak, peak <= choice.gpu.memory_bytes)


def _scaled(policy: BatchPolicy) -> tuple[str, ...]:
    """The fields that say how large a batch is."""
    used = STRATEGIES[policy.strategy].fields
    return tuple(name for name in ("token_budget", "rows") if name in used)


def _larger(policy: BatchPolicy, factor: int) -> BatchPolicy:
    sizes = {name: getattr(policy, name) * factor for name in _scaled(policy)}
    if "max_rows" in policy.spec.fields:
        sizes["max_rows"] = policy.max_rows * factor
    return replace(policy, **sizes)


def _sizes(policy: BatchPolicy, factor: int) -> str:
    return ", ".join(f"{name} {getattr(policy, name) * factor:,}" for name in _scaled(policy))
