"""The table of symptoms: which number of a compared strategy tells of what, from which value on, and what helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labkit.batching.strategies import Strategy
from labkit.cost.devices import Gpu
from labkit.cost.step_time import Bound
from labkit.experiments.compare_rows import Compared
from labkit.provenance import Figure, Origin
from labkit.units import format_bytes, format_count, format_seconds, format_share

#: What a symptom sees: the strategy, and the GPU that is modelled.
Look = Callable[[Compared, Gpu | None], "Sign | None"]


@dataclass(frozen=True, slots=True)
class Sign:
    """The number that gives a symptom away.

    Attributes:
        figure: the number, with its origin.
        text: the number in words.
    """

    figure: Figure
    text: str


@dataclass(frozen=True, slots=True)
class Symptom:
    """One row of the table.

    Attributes:
        name: what one sees.
        threshold: from which value on, in words.
        cause: what is behind it.
        check: how to make sure.
        remedy: what to do.
        look: finds the number; None where it does not apply.
    """

    name: str
    threshold: str
    cause: str
    check: str
    remedy: str
    look: Look


PADDING, LOST, MOST, WAIT, FRAGMENTED, THROTTLED = 0.3, 0.01, 0.5, 0.1, 0.3, 0.1


def _padding(row: Compared, gpu: Gpu | None) -> Sign | None:
    if row.audit is None or row.audit.padding_ratio <= PADDING:
        return None
    ratio = row.audit.padding_ratio
    return Sign(Figure(ratio, "1", Origin.EXACT), f"padding {format_share(ratio)}")


def _losses(row: Compared, gpu: Gpu | None) -> Sign | None:
    if row.audit is None or row.audit.lost_share <= LOST:
        return None
    users, events = row.audit.truncated_share, row.audit.lost_share
    cut = "" if users is None else f", users cut {format_share(users)}"
    return Sign(Figure(events, "1", Origin.EXACT), f"events lost {format_share(events)}{cut}")


def _over_budget(row: Compared, gpu: Gpu | None) -> Sign | None:
    if row.audit is None or not row.audit.batches_over_budget:
        return None
    many = row.audit.batches_over_budget
    return Sign(Figure(many, "1", Origin.EXACT), f"{format_count(many)} batches over budget")


def _launch_bound(row: Compared, gpu: Gpu | None) -> Sign | None:
    if row.modelled is None or row.modelled.bound is not Bound.LAUNCH:
        return None
    busy, launches, time = (row.modelled.figures[name] for name in ("utilization", "launches", "time_s"))
    if busy.value is None or launches.value is None or not time.value:
        return None
    rate = format_count(launches.value / time.value)
    return Sign(busy, f"launch in {_part(row)}, busy {format_share(busy.value)}, {rate} launches/s")


def _host_gap(row: Compared, gpu: Gpu | None) -> Sign | None:
    gap = _measured(row, "host_gap_share")
    if gap is None or gap.value is None or gap.value <= MOST:
        return None
    return Sign(gap, f"no kernel runs {format_share(gap.value)} of the time")


def _bound(bound: Bound) -> Look:
    def look(row: Compared, gpu: Gpu | None) -> Sign | None:
        if row.modelled is None or row.modelled.bound is not bound:
            return None
        time = row.modelled.figures["time_s"]
        return Sign(time, f"{bound} in {_part(row)}")

    return look


def _part(row: Compared) -> str:
    """How much of the modelled time the bound rules: ``most of`` only above half of it."""
    if row.modelled is None or row.modelled.bound_share is None:
        raise ValueError("a bound without its share of the time: expected both, got the bound alone")
    share, time = row.modelled.bound_share, format_seconds(row.modelled.figures["time_s"].value or 0.0)
    return f"most of {time}" if share > MOST else f"the largest part of {time} ({format_share(share)})"


def _too_large(row: Compared, gpu: Gpu | None) -> Sign | None:
    if row.modelled is None or gpu is None:
        return None
    peak = row.modelled.figures["peak_bytes"]
    if peak.value is None or peak.value <= gpu.memory_bytes:
        return None
    return Sign(peak, f"{format_bytes(peak.value)} on a {gpu.name} of {format_bytes(gpu.memory_bytes)}")


def _above(name: str, limit: float, say: str) -> Look:
    """A measured share above a limit."""

    def look(row: Compared, gpu: Gpu | None) -> Sign | None:
        figure = _measured(row, name)
        if figure is None or figure.value is None or figure.value <= limit:
            return None
        text = format_share(figure.value) if limit else format_count(figure.value)
        return Sign(figure, f"{say} {text}")

    return look


def _fragmented(row: Compared, gpu: Gpu | None) -> Sign | None:
    if row.strategy is Strategy.BUCKET_GRAPH:
        return None  # its graphs keep a pool of their own, reserved and in no tensor between replays
    return _above("fragmentation", FRAGMENTED, "fragmentation")(row, gpu)


def _measured(row: Compared, name: str) -> Figure | None:
    return None if row.record is None else row.record.figures.get(name)


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "much padding",
        f"more than {PADDING:.0%} of the slots are empty",
        "rows of different length share one width",
        "labkit what-if: padding and slots of the other strategies",
        "buckets by length (bucket_budget); jagged or packed where the model takes them; a cap where its loss is small",
        _padding,
    ),
    Symptom(
        "lost events",
        f"more than {LOST:.0%} of the events never reach the model",
        "a cap, or bucket widths below the longest of their bucket (quantile_p95)",
        "notebook 02: users cut and events lost against the cap",
        "a higher max_length; optimal edges, whose widths cut nothing; packed with overflow=split",
        _losses,
    ),
    Symptom(
        "batches over budget",
        "one or more",
        "a width above the token budget, with oversize=single_row",
        "plan.audit(): batches_over_budget and overshoot",
        "a token budget of at least the longest row, or a cap",
        _over_budget,
    ),
    Symptom(
        "launch-bound (modelled)",
        "starting kernels rules the largest part of the time",
        "the host takes longer to launch than the device to work (fewer bytes change nothing then), or kernels are "
        "shorter than their start",
        "labkit profile: gaps between kernels in nsys; launches an epoch in the table",
        "fewer, larger batches (token_budget, rows); bucket_graph; torch.compile",
        _launch_bound,
    ),
    Symptom(
        "idle GPU (measured)",
        f"no kernel runs in more than {MOST:.0%} of the time",
        "the host does not keep up: launches, synchronizations or the loader",
        "labkit profile: what the host does in the gaps; loader_wait_share of the record",
        "bucket_graph, larger batches, loader workers, pad_on_device",
        _host_gap,
    ),
    Symptom(
        "bandwidth-bound (modelled)",
        "the device keeps the host waiting, and moving bytes rules the largest part of the time",
        "elementwise ops and gathers read and write far more than they compute",
        "labkit profile: ncu, DRAM throughput near its peak while SM throughput is low",
        "fewer slots; fused kernels (torch.compile); bf16 activations",
        _bound(Bound.BANDWIDTH),
    ),
    Symptom(
        "compute-bound (modelled)",
        "the device keeps the host waiting, and arithmetic rules the largest part of the time",
        "the matrix products rule: that is what the GPU is for",
        "labkit profile: ncu, SM throughput near its peak",
        "fewer padded slots; tensor cores (tf32, bf16); widths in multiples of 16",
        _bound(Bound.COMPUTE),
    ),
    Symptom(
        "does not fit",
        "the modelled peak is above the memory of the GPU",
        "the largest batch: its rows times its width",
        "largest batch and peak in the table",
        "a lower token_budget or rows, a cap, or a strategy with a budget",
        _too_large,
    ),
    Symptom(
        "slow loader",
        f"the loop waits for its batch more than {WAIT:.0%} of the time",
        "fetching and collating take as long as the steps they feed",
        "labkit measure --workers N: does the wait go?",
        "loader workers and prefetch; pad_on_device; strategies whose batches cost little to make",
        _above("loader_wait_share", WAIT, "wait"),
    ),
    Symptom(
        "fragmented memory",
        f"more than {FRAGMENTED:.0%} of what the allocator holds is in no tensor",
        "batches of many different shapes",
        "allocated and reserved bytes of the record; shapes in labkit what-if",
        "fewer shapes (length_multiple, fewer buckets); PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; not "
        "bucket_graph: the pool of its graphs stays reserved",
        _fragmented,
    ),
    Symptom(
        "recompiles",
        "one or more while steps were timed",
        "torch.compile met a shape it had not seen",
        "TORCH_LOGS=recompiles",
        "static shapes (bucket_graph), fewer buckets, mark_dynamic",
        _above("recompiles", 0, "recompiles"),
    ),
    Symptom(
        "graph fallbacks",
        "one or more steps ran launch by launch",
        "a shape that was not captured",
        "graph_captures and graph_fallbacks of the record",
        "static_shapes, drop_last, or every shape captured before the first step",
        _above("graph_fallbacks", 0, "fallbacks"),
    ),
    Symptom(
        "clocks held down",
        f"in more than {THROTTLED:.0%} of the samples",
        "power or temperature limit, or another process",
        "nvidia-smi -q -d PERFORMANCE",
        "cooling, a higher power limit; compare runs only at equal clocks",
        _above("throttled_share", THROTTLED, "throttled"),
    ),
)
