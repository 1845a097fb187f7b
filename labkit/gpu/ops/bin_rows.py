"""``labkit::bin_rows``: rows sorted by regime, heaviest first, for kernels that treat each length in its own way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch import launch
from labkit.gpu.ops.checks import check_offsets, check_row_count, mark_bins
from labkit.gpu.regimes import HEADER

_OP = "bin_rows"
_CLASSES, _TILE = 16, 1024  # constants of kernels/bin_rows.cu


@torch.library.custom_op("labkit::bin_rows", mutates_args=(), device_types="cpu")
def bin_rows(offsets: Tensor, giants: int, thresholds: Sequence[int]) -> Tensor:
    """Sort the rows of a batch by regime, once for all ops on it.

    Args:
        offsets: (B+1,) int64.
        giants: room for giant rows: ``LaunchConfig.giants(T)``; 0 makes giants long.
        thresholds: ``LaunchConfig.thresholds``.

    Returns:
        (4 + giants + 1 + B,) int32: giant rows, end of long, end of medium, pieces; the first piece of each giant; the
        rows in order.

    Raises:
        ShapeError: offsets that are not (B+1,).
        KernelArgumentError: offsets of another dtype.

    Cost: three or four small launches; reads the offsets twice, writes 4 bytes a row; no host synchronization.
    """
    rows = check_offsets(offsets)
    short_max, medium_max, long_max = thresholds
    lengths = offsets.diff()
    bits = torch.bucketize(lengths, 2 ** torch.arange(_CLASSES - 4, device=offsets.device), right=True)
    classes = torch.where(lengths <= short_max, _CLASSES - 1 - bits, 2)
    classes = classes.masked_fill(lengths > medium_max, 1)
    if giants:
        classes = classes.masked_fill(lengths > long_max, 0)
    order = classes.argsort(stable=True)
    ends = torch.stack([(classes <= regime).sum() for regime in range(3)])
    in_pieces = (lengths[order[:giants]] + long_max - 1) // long_max
    in_pieces = in_pieces * (torch.arange(in_pieces.shape[0], device=offsets.device) < ends[0])
    first_pieces = torch.zeros(giants + 1, dtype=torch.int64, device=offsets.device)
    first_pieces[1:] = in_pieces.sum()
    first_pieces[1 : in_pieces.shape[0] + 1] = in_pieces.cumsum(0)
    bins = torch.cat([ends, first_pieces[-1:], first_pieces, order[:rows]]).int()
    return mark_bins(bins, rows, thresholds)


@bin_rows.register_kernel("cuda")
def bin_rows_cuda(offsets: Tensor, giants: int, thresholds: Sequence[int]) -> Tensor:
    """``bin_rows`` by its kernels."""
    rows, device = check_offsets(offsets), offsets.device
    check_row_count(rows)
    tiles = -(-rows // _TILE)
    bins = mark_bins(torch.empty(HEADER + giants + 1 + rows, dtype=torch.int32, device=device), rows, thresholds)
    if not rows:
        return bins.zero_()
    counts = torch.empty(_CLASSES * tiles, dtype=torch.int32, device=device)
    sizes = (np.int32(rows), np.int32(giants), *(np.int32(most) for most in thresholds))
    launch(_OP, "count_rows", tiles, (counts, offsets, *sizes), device)
    launch(_OP, "start_classes", 1, (bins, counts, np.int32(tiles)), device)
    launch(_OP, "place_rows", tiles, (bins, counts, offsets, *sizes), device)
    launch(_OP, "cut_giants", min(1, giants), (bins, offsets, np.int32(giants), np.int32(thresholds[2])), device)
    return bins


@bin_rows.register_fake
def _(offsets: Tensor, giants: int, thresholds: Sequence[int]) -> Tensor:
    return offsets.new_empty(HEADER + giants + offsets.shape[0], dtype=torch.int32)
