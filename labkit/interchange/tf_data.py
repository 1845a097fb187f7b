"""Boundaries of ``tf.data.Dataset.bucket_by_sequence_length``.

    {"bucket_boundaries": [9, 21, 51], "bucket_batch_sizes": [64, 24, 8, 1]}     or the list of boundaries alone

An element is in bucket i if ``boundaries[i-1] <= length < boundaries[i]``: a boundary is the first length of the next
bucket, so that the upper-inclusive edge is the boundary minus 1. What is as long as the last boundary or longer is in
one more, open bucket: there is one batch size more than boundaries. With ``pad_to_bucket_boundary`` rows are padded to
the boundary minus 1, which is our edge, and nothing may be in the open bucket.
"""

from __future__ import annotations

from typing import Any

from labkit.errors import EdgesError
from labkit.interchange.foreign import EdgeFormat, ForeignEdges
from labkit.interchange.json_lists import field_of, increasing, whole_numbers
from labkit.lengths.validate import MAX_LENGTH


def parse(data: Any, where: str) -> ForeignEdges:
    """Read the boundaries of a JSON value.

    Raises:
        DataFileError: no boundaries in it; EdgesError: unsorted, repeated or fractional boundaries, one below 2 (its
            bucket would hold lengths of 0 alone), another number of batch sizes.
    """
    name = "bucket_boundaries"
    found = field_of(data, (name,), where, "bucket boundaries")
    boundaries = increasing(whole_numbers(found, name, where, least=2), name, where)
    edges = tuple(boundary - 1 for boundary in boundaries)
    sizes = data.get("bucket_batch_sizes") if isinstance(data, dict) else None
    if sizes is None:
        return ForeignEdges(EdgeFormat.TF_DATA, edges, open_end=True)
    rows = whole_numbers(sizes, "bucket_batch_sizes", where, unit="sequences")
    if len(rows) != len(edges) + 1:
        raise EdgesError(
            f"{where}: bucket_batch_sizes must have one size more than boundaries, for the open bucket: "
            f"got {len(rows)} sizes for {len(edges)} boundaries."
        )
    return ForeignEdges(EdgeFormat.TF_DATA, edges, rows, open_end=True)


def content(edges: list[int], rows: list[int], *, pads_to_edge: bool, drop_last: bool) -> dict[str, Any]:
    """The keyword arguments: a boundary above each edge, and batches of one row in the open bucket.

    Raises:
        EdgesError: an edge of 2**31 - 1, whose boundary no int32 holds.
    """
    if edges[-1] >= MAX_LENGTH:
        raise EdgesError(f"edge {edges[-1]} has no boundary in tf.data, which counts in int32: lower the last edge.")
    return {
        "bucket_boundaries": [edge + 1 for edge in edges],
        "bucket_batch_sizes": [*rows, 1],
        "pad_to_bucket_boundary": pads_to_edge,
        "drop_remainder": drop_last,
    }
