"""Duration bins of Lhotse and NeMo.

    {"bucket_duration_bins": [8, 20, 50], "bucket_batch_size": [64, 24, 8]}     or the list alone

A sequence goes to the first bin that is not below its length: ``bisect_left`` in Lhotse's
``SamplingConstraint.select_bucket``. So the bins are upper-inclusive edges, as here. (The docstring of Lhotse's
``estimate_duration_buckets`` still says ``bins[i-1] <= d < bins[i]``, and so did the code of releases before that
method, with ``bisect_right``.) What is above the last bin:

- without ``bucket_batch_size`` goes to one more, open bucket, up to NeMo's ``max_duration`` where that is given;
- with it, one size a bin, is refused by ``FixedBucketBatchSizeConstraint``, so that the last bin is the longest length.

Bins may be fractions of seconds there. Here they are numbers of events (tokens, frames), so they must be whole.
NeMo's two-dimensional bins ``[[input, output], ...]`` are refused: labkit buckets one length.
"""

from __future__ import annotations

from typing import Any

from labkit.errors import EdgesError
from labkit.interchange.foreign import EdgeFormat, ForeignEdges
from labkit.interchange.json_lists import field_of, increasing, whole_numbers

_UNIT = "events (tokens, frames), not in seconds"


def parse(data: Any, where: str) -> ForeignEdges:
    """Read the bins of a JSON value.

    Raises:
        DataFileError: no bins in it; EdgesError: two-dimensional, fractional, unsorted, repeated or negative bins,
            another number of batch sizes, a ``max_duration`` below the last bin.
    """
    bins = field_of(data, ("bucket_duration_bins", "duration_bins"), where, "duration bins")
    name = "duration bins" if isinstance(data, list) else "bucket_duration_bins"
    if isinstance(bins, list) and any(isinstance(item, list) for item in bins):
        raise EdgesError(
            f"{where}: {name} are two-dimensional ([[input, output], ...]), labkit buckets one length: "
            "give the input's."
        )
    edges = increasing(whole_numbers(bins, name, where, unit=_UNIT), name, where)
    fields = data if isinstance(data, dict) else {}
    if fields.get("bucket_batch_size") is not None:
        sizes = whole_numbers(fields["bucket_batch_size"], "bucket_batch_size", where, unit="sequences")
        if len(sizes) != len(edges):
            raise EdgesError(
                f"{where}: bucket_batch_size must have one size a bin: got {len(sizes)} sizes for {len(edges)} bins."
            )
        return ForeignEdges(EdgeFormat.LHOTSE, edges, sizes)
    if "bucket_duration_bins" not in fields or fields.get("max_duration") is None:
        return ForeignEdges(EdgeFormat.LHOTSE, edges, open_end=True)
    (longest,) = whole_numbers([fields["max_duration"]], "max_duration", where, unit=_UNIT)
    if longest < edges[-1]:
        raise EdgesError(f"{where}: max_duration {longest} is below the last bin {edges[-1]}: nothing would reach it.")
    return ForeignEdges(EdgeFormat.LHOTSE, edges if longest == edges[-1] else (*edges, longest))


def content(edges: list[int], rows: list[int], *, drops_longer: bool) -> dict[str, Any]:
    """The fields of NeMo's data loader: one bin and one batch size a bucket, the last bin the longest length."""
    fields: dict[str, Any] = {"bucket_duration_bins": edges, "bucket_batch_size": rows}
    return {**fields, "max_duration": edges[-1]} if drops_longer else fields
