"""The segmented layout: rows end to end, and which of them are short, medium, long or giant, for kernels that care."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from labkit.errors import PolicyError, ShapeError
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.embedding_pool import embedding_pool
from labkit.gpu.ops.segment_pool import segment_max, segment_sum, segment_sum_backward
from labkit.jagged import validate_offsets
from labkit.layouts.jagged_batch import JaggedBatch


class SegmentedBatch(NamedTuple):
    """A jagged batch with its rows sorted by regime, once for all ops on it.

    Attributes:
        values: (T,) or (T, D); for samples with named fields a dict of them, fixed-size fields being (R, ...).
        offsets: (R + 1,) int64; ghost rows are empty.
        rows: real rows; the R - rows ghost rows come last.
        bins: int32, of ``labkit::bin_rows``, on the device of the offsets.
        config: the thresholds by which they were made.
    """

    values: Tensor | dict[str, Tensor]
    offsets: Tensor
    rows: int
    bins: Tensor
    config: LaunchConfig

    def pool(self, values: Tensor, mode: str = "mean") -> Tensor:
        """(R, D) sum, mean or maximum of (T, D) over the events of each row; 0 for empty rows.

        Raises:
            PolicyError: a mode that is none of the three.
            ShapeError: values that are not (T, D).
            KernelArgumentError: a dtype, device or stride that a kernel would misread.
        """
        if mode == "max":
            pooled: Tensor = segment_max(values, self.offsets, self.bins, self.config.thresholds)[0]
            return pooled
        summed: Tensor = segment_sum(values, self.offsets, self.bins, self.config.thresholds, _is_mean(mode))
        return summed

    def embedding_pool(self, table: Tensor, ids: Tensor, weights: Tensor | None = None, mode: str = "mean") -> Tensor:
        """(R, D) sum or mean over the events of each row of the entries (V, D) that (T,) ids name, by (T,) weights.

        Sum and mean never make the (T, D) entries; an id outside of the table makes its row NaN. A maximum gathers
        them.

        Raises:
            PolicyError: a mode that is none of sum, mean, max, or weights of a maximum.
            ShapeError: shapes that do not fit together.
            KernelArgumentError: a dtype, device or stride that a kernel would misread.
        """
        if mode == "max":
            if weights is not None:
                raise PolicyError("a maximum has no weights: pool by sum or mean, or leave them out.")
            return self.pool(table[ids], mode)
        arguments = (table, ids, weights, self.offsets, self.bins, self.config.thresholds)
        pooled: Tensor = embedding_pool(*arguments, _is_mean(mode))
        return pooled

    def spread(self, values: Tensor, events: int) -> Tensor:
        """(T, D): the (R, D) values of each row at all its events; the gradient is a sum over the row.

        Args:
            values: (R, D).
            events: T.

        Raises:
            ShapeError: values that are not (R, D).
            KernelArgumentError: a dtype, device or stride that a kernel would misread.
        """
        spread: Tensor = segment_sum_backward(values, self.offsets, self.bins, self.config.thresholds, events, False)
        return spread

    def attend(self, scores: Tensor, values: Tensor) -> Tensor:
        """(R, D): (T, D) values by the softmax of (T,) scores within each row; -inf masks; 0 for rows without any.

        Raises:
            ShapeError: shapes that do not fit together.
            KernelArgumentError: a dtype, device or stride that a kernel would misread.
        """
        pooled: Tensor = attention_pool(scores, values, self.offsets, self.bins, self.config.thresholds)[0]
        return pooled


def segmented(batch: JaggedBatch, config: LaunchConfig | None = None, *, events: int | None = None) -> SegmentedBatch:
    """Sort the rows of a jagged batch by regime, where its offsets are.

    In a worker of a DataLoader that is the host: then nothing has to be launched for it, and the bins move with the
    batch. For a batch that is on a device already it is the device, and the host does not wait.

    Args:
        batch: as ``collate`` makes it.
        config: thresholds, best of ``LaunchConfig.for_histogram``; None: the defaults.
        events: T; None: found in values without names, or in offsets on the host.

    Raises:
        ShapeError: nobody can say T without waiting for a device; offsets on the host that do not cut T events.

    Cost: a sort of the rows; 4 bytes a row more to move.
    """
    config = LaunchConfig() if config is None else config
    events = _events(batch) if events is None else events
    if batch.offsets.device.type == "cpu":
        validate_offsets(batch.offsets, events)
    giants = config.giants(events)
    bins = bin_rows(batch.offsets, giants, config.thresholds)
    return SegmentedBatch(batch.values, batch.offsets, batch.rows, bins, config)


def _events(batch: JaggedBatch) -> int:
    if isinstance(batch.values, Tensor):
        return batch.values.shape[0]
    if batch.offsets.device.type != "cpu":
        raise ShapeError(
            f"T of a batch with named fields and offsets on {batch.offsets.device} is not known on the host: pass "
            "events=, or call segmented before the batch is moved."
        )
    return int(batch.offsets[-1])


def _is_mean(mode: str) -> bool:
    if mode not in ("sum", "mean"):
        raise PolicyError(f"mode must be sum, mean or max: got {mode!r}.")
    return mode == "mean"
