"""The bars that the kernels are to reach, each met or missed: arithmetic on the timings of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labkit.gpu_check.report import Entry

#: Of the measured copy bandwidth, for ops that copy or pool.
COPY_SHARE = 0.85
#: Of DIN's attention over padding and masking, on Zipf lengths.
ATTENTION_SPEEDUP = 3.0
#: On uniform lengths no op is slower than the best way of torch by more than a tenth.
UNIFORM_SPEEDUP = 1 / 1.1

_MOVERS = ("jagged_to_padded", "padded_to_jagged", "segment_sum", "segment_sum_backward", "segment_max")
#: Sorting all lengths is more than binning them.
_NO_PEER = ("bin_rows",)
_ATTENTION = ("attention_pool", "attention_pool_backward")


def bars(timings: Sequence[Entry]) -> list[Entry]:
    """Every bar that these cases of the item ``ops`` have a value for.

    Returns:
        ``bar`` in words, ``case``, ``value``, ``wanted`` (at least) and ``met``.
    """
    found = []
    for case in timings:
        if not case.get("ok"):
            continue
        for words, wanted, value_of in _BARS:
            value = value_of(case)
            if value is not None:
                found.append(
                    {"bar": words, "case": case["case"], "value": value, "wanted": wanted, "met": value >= wanted}
                )
    return found


def _copy_share(case: Entry) -> float | None:
    return case["share_of_copy"] if case["op"] in _MOVERS else None


def _over_bags(case: Entry) -> float | None:
    return _over(case, "EmbeddingBag") if case["op"] == "embedding_pool" else None


def _over_padding(case: Entry) -> float | None:
    return _over(case, "pad and mask") if case["op"] in _ATTENTION and case["lengths"] == "zipf" else None


def _over_torch(case: Entry) -> float | None:
    return case["speedup"] if case["lengths"] == "uniform" and case["op"] not in _NO_PEER else None


def _over(case: Entry, peer: str) -> float | None:
    time = case["peers"].get(peer, {}).get("median_s")
    return None if time is None else time / case["median_s"]


_BARS: tuple[tuple[str, float, Callable[[Entry], float | None]], ...] = (
    ("share of the measured copy bandwidth", COPY_SHARE, _copy_share),
    ("times as fast as EmbeddingBag", 1.0, _over_bags),
    ("times as fast as torch's pad and mask, Zipf lengths", ATTENTION_SPEEDUP, _over_padding),
    ("times as fast as the best way of torch, uniform lengths", UNIFORM_SPEEDUP, _over_torch),
)
