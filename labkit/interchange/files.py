"""Edge files of other tools: read into ``ForeignEdges``, written from a policy, with what they cannot say named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labkit.batching.fields import choice
from labkit.batching.groups import Groups, resolve_groups
from labkit.batching.policy import BatchPolicy, Overflow, PadTo
from labkit.batching.strategies import Batching
from labkit.errors import DataFileError, EdgesError, PolicyError
from labkit.files import PathKind, check_target, kind_of, reason_of, write_whole
from labkit.interchange import capture_sizes, lhotse, tf_data
from labkit.interchange.foreign import EdgeFormat, ForeignEdges
from labkit.interchange.json_lists import read_json


def read_edges(path: str | os.PathLike[str], format: EdgeFormat | str) -> ForeignEdges:  # noqa: A002
    """Read the edges of another tool, JSON, by its own rule at the edges (see the module of its name).

    Args:
        path: JSON; for a YAML configuration, the part with the edges written as JSON.
        format: ``lhotse`` (NeMo too), ``tf-data`` or ``capture-sizes``.

    Raises:
        DataFileError: an empty name, not there, not JSON, or a file of another kind.
        EdgesError: numbers that are unsorted, repeated, fractional or out of range, or batch sizes that do not match.
        PolicyError: a format that does not exist.
    """
    kind = choice("format", format, EdgeFormat)
    data = read_json(Path(path))
    where = os.fspath(path)
    match kind:
        case EdgeFormat.LHOTSE:
            return lhotse.parse(data, where)
        case EdgeFormat.TF_DATA:
            return tf_data.parse(data, where)
        case EdgeFormat.CAPTURE_SIZES:
            return capture_sizes.parse(data, where)


def write_edges(
    policy: BatchPolicy,
    path: str | os.PathLike[str],
    format: EdgeFormat | str,  # noqa: A002
) -> tuple[str, ...]:
    """Write the edges and rows of a bucket policy for another tool.

    A file that is there is replaced if ``read_edges`` reads it in this format; any other file is not.

    Returns:
        What the file cannot say of the policy, a line each, such as ``max_length 50``: the tool must be told otherwise.

    Raises:
        PolicyError: a strategy without buckets, or a format that does not exist.
        EdgesError: an edge that the format cannot hold.
        DataFileError: a path that cannot be written to, or that of a file which holds no edges in this format; what is
            there stays as it is then.
    """
    text = edges_text(policy, format)
    write_whole(_checked_target(path, choice("format", format, EdgeFormat)), text)
    return not_carried(policy, format)


def _checked_target(path: str | os.PathLike[str], kind: EdgeFormat) -> Path:
    """The path, if edges can be written there without overwriting anything else."""
    target = check_target(path)
    there = kind_of(target, verb="write")
    if there is not None and not (there is PathKind.FILE and _holds_edges(target, kind)):
        raise DataFileError(
            f"{str(target)!r} is there and is no edges file of format {kind}, so it is not overwritten: "
            "choose another name."
        )
    return target


def _holds_edges(path: Path, kind: EdgeFormat) -> bool:
    try:
        with path.open("rb") as file:
            if not file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
                return False  # a large file of another kind is not read
        read_edges(path, kind)
    except OSError as error:
        raise DataFileError(f"cannot read {str(path)!r}, which would be overwritten: {reason_of(error)}.") from error
    except (DataFileError, EdgesError):
        return False
    return True


def edges_text(policy: BatchPolicy, format: EdgeFormat | str) -> str:  # noqa: A002
    """What ``write_edges`` writes."""
    kind = choice("format", format, EdgeFormat)
    if policy.spec.batching is not Batching.BUCKETS:
        raise PolicyError(f"strategy {policy.strategy} has no bucket edges to write: use a bucket strategy.")
    return json.dumps(_content(policy, resolve_groups(policy, None), kind), indent=2) + "\n"


def _content(policy: BatchPolicy, groups: Groups, kind: EdgeFormat) -> dict[str, Any]:
    edges, rows = groups.edges.tolist(), groups.rows.tolist()
    match kind:
        case EdgeFormat.LHOTSE:
            return lhotse.content(edges, rows, drops_longer=policy.overflow is Overflow.DROP)
        case EdgeFormat.TF_DATA:
            pads_to_edge = policy.pad_to is PadTo.EDGE
            return tf_data.content(edges, rows, pads_to_edge=pads_to_edge, drop_last=policy.drop_last)
        case EdgeFormat.CAPTURE_SIZES:
            return capture_sizes.content(groups.widths.tolist())


def not_carried(policy: BatchPolicy, format: EdgeFormat | str) -> tuple[str, ...]:  # noqa: A002
    """The settings of a policy that change its batches and that a file of this format does not hold."""
    kind = choice("format", format, EdgeFormat)
    holds = {
        EdgeFormat.LHOTSE: {"overflow"} if policy.overflow is Overflow.DROP else set(),
        EdgeFormat.TF_DATA: {"drop_last"},
        EdgeFormat.CAPTURE_SIZES: {"length_multiple"},
    }[kind]
    settings: dict[str, Any] = {
        "max_length": policy.max_length,
        "bucket_widths": policy.bucket_widths and list(policy.bucket_widths),
        "overflow": None if policy.overflow is Overflow.ERROR else policy.overflow,
        "length_multiple": None if policy.length_multiple == 1 else policy.length_multiple,
        "static_shapes": policy.has_static_shapes or None,
        "drop_last": policy.drop_last or None,
    }
    return tuple(f"{name} {value}" for name, value in settings.items() if value is not None and name not in holds)
