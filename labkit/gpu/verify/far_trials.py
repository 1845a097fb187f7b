"""Trials of events, items and slots whose number no 32 bits hold, in far memory: on the CPU runner alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.copies import jagged_to_padded_cuda, padded_to_jagged_cuda
from labkit.gpu.ops.din_attention import attention_pool_backward_cuda, attention_pool_cuda
from labkit.gpu.ops.embedding_pool import embedding_pool_cuda, embedding_pool_weight_grad_cuda
from labkit.gpu.ops.segment_pool import (
    segment_max_backward_cuda,
    segment_max_cuda,
    segment_sum_backward_cuda,
    segment_sum_cuda,
)
from labkit.gpu.verify.far import FAR, FarTensors, end_of
from labkit.gpu.verify.ragged import DIMS, EVENTS, OFFSETS, REGIMES, ROWS, random
from labkit.gpu.verify.trial import Compared, Trial
from labkit.reference import attention, embedding, jagged, segments

_HOST, _FAR_OFFSETS = OFFSETS.numpy(), OFFSETS + FAR
_THRESHOLDS = REGIMES["mixed"].thresholds
#: Without giants, whose workspace would be that of 2**32 events.
_BINS = bin_rows(OFFSETS, 0, _THRESHOLDS)
_CLOSE = 1e-4  # sums of up to 700 standard normal numbers; what is read elsewhere is 0
_ITEMS = 50
#: L of three rows of more slots than 2**32, and the blocks at the end that are run.
_WIDTH, _BLOCKS, _SEEN = 2**31 - 1, 8, 1024


def far_segments() -> Iterator[Trial]:
    """``segment_pool``."""
    for dim in DIMS[:2]:
        yield Trial(f"events from 2**32 on, D={dim}", partial(_segments, dim), once=True, host=True)


def far_entries() -> Iterator[Trial]:
    """``embedding_pool``."""
    for dim in DIMS[:2]:
        yield Trial(f"items and events from 2**32 on, D={dim}", partial(_entries, dim), once=True, host=True)


def far_attention() -> Iterator[Trial]:
    """``din_attention``."""
    for dim in DIMS[:2]:
        yield Trial(f"events from 2**32 on, D={dim}", partial(_attention, dim), once=True, host=True)


def far_to_padded() -> Iterator[Trial]:
    """``jagged_to_padded``."""
    yield Trial("events from 2**32 on", _events_to_padded, once=True, host=True)
    yield Trial("slots above 2**32", _slots_to_padded, once=True, host=True)


def far_to_jagged() -> Iterator[Trial]:
    """``padded_to_jagged``."""
    yield Trial("slots above 2**32", _slots_to_jagged, once=True, host=True)


def _segments(dim: int) -> Iterator[Compared]:
    values, grad = random(0, EVENTS, dim), random(2, ROWS, dim)
    rows = (_FAR_OFFSETS, _BINS, _THRESHOLDS)
    (sums,) = end_of(lambda far: segment_sum_cuda(far.ending_with(values), *rows, False))
    yield Compared("sums", sums, segments.segment_sum(values.numpy(), _HOST), _CLOSE)
    top, at = end_of(lambda far: segment_max_cuda(far.ending_with(values), *rows))
    maxima, places = segments.segment_max(values.numpy(), _HOST)
    yield Compared("maxima", top, maxima)
    yield Compared("their places", at, places)
    (found,) = end_of(lambda _: segment_sum_backward_cuda(grad, *rows, FAR + EVENTS, False))
    yield Compared("gradients of sums", found, segments.segment_sum_backward(grad.numpy(), _HOST))
    (found,) = end_of(lambda _: segment_max_backward_cuda(grad, at, *rows, FAR + EVENTS))
    yield Compared("gradients of maxima", found, segments.segment_max_backward(grad.numpy(), places, _HOST))


def _entries(dim: int) -> Iterator[Compared]:
    table, weights, grad = random(0, _ITEMS, dim), random(1, EVENTS), random(2, ROWS, dim)
    near = torch.from_numpy(np.random.default_rng(0).integers(0, _ITEMS, EVENTS))
    rows = (_FAR_OFFSETS, _BINS, _THRESHOLDS)
    for own in (None, weights):
        (pooled,) = end_of(partial(_pooled, table, near, own))
        host = None if own is None else own.numpy()
        expected = embedding.embedding_pool(table.numpy(), near.numpy(), _HOST, host, mean=False)
        yield Compared("pooled entries", pooled, expected, _CLOSE)
    (found,) = end_of(
        lambda far: embedding_pool_weight_grad_cuda(
            grad, far.ending_with(table), far.ending_with(near + FAR), *rows, False
        )
    )
    _, expected = embedding.embedding_pool_backward(grad.numpy(), table.numpy(), near.numpy(), _HOST, mean=False)
    yield Compared("gradients of the weights", found, expected, _CLOSE)


def _pooled(table: Tensor, near: Tensor, weights: Tensor | None, far: FarTensors) -> Tensor:
    own = None if weights is None else far.ending_with(weights)
    ids = far.ending_with(near + FAR)
    rows = (_FAR_OFFSETS, _BINS, _THRESHOLDS)
    pooled: Tensor = embedding_pool_cuda(far.ending_with(table), ids, own, *rows, False)
    return pooled


def _attention(dim: int) -> Iterator[Compared]:
    scores, values, grad = random(0, EVENTS), random(1, EVENTS, dim), random(2, ROWS, dim)
    rows = (_FAR_OFFSETS, _BINS, _THRESHOLDS)
    out, top, total = end_of(lambda far: attention_pool_cuda(far.ending_with(scores), far.ending_with(values), *rows))
    expected = attention.attention_pool(scores.numpy(), values.numpy(), _HOST)
    yield Compared("pooled values", out, expected.out, _CLOSE)
    of_scores, of_values = end_of(
        lambda far: attention_pool_backward_cuda(
            grad, out, top, total, far.ending_with(scores), far.ending_with(values), *rows
        )
    )
    by_score, by_value = attention.attention_pool_backward(grad.numpy(), scores.numpy(), values.numpy(), _HOST)
    yield Compared("gradients of the scores", of_scores, by_score, _CLOSE)
    yield Compared("gradients of the values", of_values, by_value, _CLOSE)


def _events_to_padded() -> Iterator[Compared]:
    for tail in ((12,), (3,)):
        values = random(0, EVENTS, *tail)
        (found,) = end_of(partial(_padded, values))
        yield Compared("slots", found, jagged.to_padded(values.numpy(), _HOST, 40, 7))


def _padded(values: Tensor, far: FarTensors) -> Tensor:
    padded: Tensor = jagged_to_padded_cuda(far.ending_with(values), _FAR_OFFSETS, 40, 7)
    return padded


def _many_slots() -> tuple[Tensor, Tensor]:
    """Offsets of two rows of one event and one of ``_WIDTH``, and what its last events are."""
    return torch.tensor([0, 1, 2, 2 + _WIDTH]), torch.arange(_SEEN).remainder(251).add(1).to(torch.uint8)


def _slots_to_padded() -> Iterator[Compared]:
    offsets, last = _many_slots()

    def call(far: FarTensors) -> Tensor:
        values = far.ending_with(last, before=2 + _WIDTH - _SEEN)
        padded: Tensor = jagged_to_padded_cuda(values, offsets, _WIDTH, 0)
        return padded[-1, -_SEEN:].clone()

    (found,) = end_of(call, last_blocks=_BLOCKS)
    yield Compared("slots", found, last.numpy())


def _slots_to_jagged() -> Iterator[Compared]:
    offsets, last = _many_slots()

    def call(far: FarTensors) -> Tensor:
        padded = far.ending_with(last, before=3 * _WIDTH - _SEEN).view(3, _WIDTH)
        values: Tensor = padded_to_jagged_cuda(padded, offsets, 2 + _WIDTH, 0)
        return values[-_SEEN:].clone()

    (found,) = end_of(call, last_blocks=_BLOCKS)
    yield Compared("events", found, last.numpy())
