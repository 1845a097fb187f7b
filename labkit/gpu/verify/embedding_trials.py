"""Trials of embedding_pool and of its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.embedding_pool import embedding_pool_cuda, embedding_pool_weight_grad_cuda
from labkit.gpu.verify.far_trials import far_entries
from labkit.gpu.verify.ragged import (
    DIMS,
    EVENTS,
    LARGE_DIM,
    LENGTHS,
    MILLION,
    OFFSETS,
    PAIR_DIM,
    REGIMES,
    ROUNDING,
    ROWS,
    STORED_DIMS,
    random,
)
from labkit.gpu.verify.segment_trials import bins_of, is_sample
from labkit.gpu.verify.trial import Array, Compared, Trial
from labkit.reference import embedding as reference

_HOST = OFFSETS.numpy()
_EPS = ROUNDING[torch.float32]
_ITEMS = 50


def embedding_pool_trials() -> Iterator[Trial]:
    """Plain mean, weighted sum and the gradient of the weights, in every regime."""
    for dim in DIMS:
        for name, config in REGIMES.items():
            rows, sample = f"{name} rows, D={dim}", is_sample(name, dim)
            yield Trial(f"mean, {rows}", partial(_pooled, config, dim, False), sample=sample)
            yield Trial(f"weighted sum, {rows}", partial(_pooled, config, dim, True), sample=sample)
            yield Trial(f"gradient of the weights, {rows}", partial(_weight_grad, config, dim), sample=sample)
    yield Trial(f"gradient of the weights, D={PAIR_DIM}", partial(_weight_grad, REGIMES["mixed"], PAIR_DIM))
    large = f"mixed rows, D={LARGE_DIM}"
    yield Trial(f"mean, {large}", partial(_pooled, REGIMES["mixed"], LARGE_DIM, False))
    yield Trial(f"weighted sum, {large}", partial(_pooled, REGIMES["mixed"], LARGE_DIM, True))
    yield Trial(f"gradient of the weights, {large}", partial(_weight_grad, REGIMES["mixed"], LARGE_DIM))
    for dtype in (torch.float16, torch.bfloat16):
        for dim in STORED_DIMS:
            yield Trial(f"{dtype} storage, D={dim}", partial(_stored, dtype, dim), sample=True)
    yield Trial("one bag of 2**20 events", _million, once=True)
    yield Trial("empty bags", _empty_bags, once=True)
    yield Trial("no bags", _no_bags, once=True)
    yield from far_entries()


@cache
def ids_with_strangers() -> Tensor:
    """(T,) ids, popular and rare ones; some that no table has, in rows 6 and 17; in 32 bits those of 1 and 15 are 0."""
    ids = torch.from_numpy(np.random.default_rng(0).zipf(1.5, EVENTS) % _ITEMS)
    ids[OFFSETS[6]], ids[OFFSETS[17]] = _ITEMS, -1
    ids[OFFSETS[1]], ids[OFFSETS[15]] = -(2**40), 2**40
    return ids


@cache
def _pool_case(dim: int, weighted: bool) -> tuple[Tensor, Tensor | None, Array, Array]:
    table, weights = random(0, _ITEMS, dim), random(1, EVENTS) if weighted else None
    return table, weights, *_expected(table, weights, mean=not weighted)


def _expected(table: Tensor, weights: Tensor | None, *, mean: bool) -> tuple[Array, Array]:
    """The reference, and the bound of n products and additions of float32 and one division."""
    ids, own = ids_with_strangers().numpy(), None if weights is None else weights.numpy()
    expected = reference.embedding_pool(table.numpy(), ids, _HOST, own, mean=mean)
    sizes = None if own is None else np.abs(own)
    size = reference.embedding_pool(table.abs().numpy(), ids, _HOST, sizes, mean=mean)
    return expected, _EPS * size * (2 * np.array(LENGTHS)[:, None] + 2)


def _pooled(config: LaunchConfig, dim: int, weighted: bool) -> Iterator[Compared]:
    table, weights, expected, bound = _pool_case(dim, weighted)
    arguments = (table, ids_with_strangers(), weights, OFFSETS, bins_of(config), config.thresholds, not weighted)
    yield Compared("pooled entries", embedding_pool_cuda(*arguments), expected, bound)


@cache
def _grad_case(dim: int, mean: bool) -> tuple[Tensor, Tensor, Array, Array]:
    table, grad = random(0, _ITEMS, dim), random(2, ROWS, dim)
    ids = ids_with_strangers().numpy()
    _, expected = reference.embedding_pool_backward(grad.numpy(), table.numpy(), ids, _HOST, mean=mean)
    sizes = (grad.abs().numpy(), table.abs().numpy(), ids, _HOST)
    _, size = reference.embedding_pool_backward(*sizes, mean=mean)
    return table, grad, expected, _EPS * size * (2 * dim + 2)


def _weight_grad(config: LaunchConfig, dim: int) -> Iterator[Compared]:
    for mean in (False, True):
        table, grad, expected, bound = _grad_case(dim, mean)
        arguments = (grad, table, ids_with_strangers(), OFFSETS, bins_of(config), config.thresholds, mean)
        yield Compared("gradients of the weights", embedding_pool_weight_grad_cuda(*arguments), expected, bound)


def _stored(dtype: torch.dtype, dim: int) -> Iterator[Compared]:
    config, rounding = REGIMES["mixed"], ROUNDING[dtype]
    table, weights, ids = random(0, _ITEMS, dim).to(dtype), random(1, EVENTS).to(dtype), ids_with_strangers()
    for own in (weights, None):
        expected, in_float32 = _expected(table.float(), None if own is None else own.float(), mean=True)
        found = embedding_pool_cuda(table, ids, own, OFFSETS, bins_of(config), config.thresholds, True)
        # below the least normal number a float16 is spaced by 2**-24
        yield Compared("pooled entries", found, expected, in_float32 + rounding * np.abs(expected) + 2.0**-25)
    grad, wide = random(2, ROWS, dim).to(dtype), table.float().numpy()
    found = embedding_pool_weight_grad_cuda(grad, table, ids, OFFSETS, bins_of(config), config.thresholds, False)
    _, expected = reference.embedding_pool_backward(grad.float().numpy(), wide, ids.numpy(), _HOST, mean=False)
    sizes = (grad.float().abs().numpy(), np.abs(wide), ids.numpy(), _HOST)
    _, size = reference.embedding_pool_backward(*sizes, mean=False)
    bound = _EPS * size * (2 * dim + 2) + rounding * np.abs(expected) + 2.0**-25
    yield Compared("gradients of the weights", found, expected, bound)


def _million() -> Iterator[Compared]:
    events, config = MILLION, LaunchConfig()
    offsets, ids, table = torch.tensor([0, 0, events]), torch.zeros(MILLION, dtype=torch.int64), torch.ones(2, 1)
    table[1], ids[777_777] = 3.0, 1
    for giants in (config.giants(events), 0):
        rows = (offsets, bin_rows(offsets, giants, config.thresholds), config.thresholds)
        yield Compared("means", embedding_pool_cuda(table, ids, None, *rows, True), np.array([[0], [1 + 2 / events]]))
        found = embedding_pool_weight_grad_cuda(torch.ones(2, 1), table, ids, *rows, True)
        yield Compared("gradients of the weights", found, table.numpy()[ids.numpy(), 0] / events)


def _empty_bags() -> Iterator[Compared]:
    table, ids, thresholds = torch.arange(10.0).view(5, 2), torch.arange(5), REGIMES["mixed"].thresholds
    offsets = torch.tensor([0, 1, 1, 3, 3, 4, 5])
    found = embedding_pool_cuda(table, ids, None, offsets, bin_rows(offsets, 0, thresholds), thresholds, True)
    yield Compared("pooled entries", found, np.array([[0, 1], [0, 0], [3, 4], [0, 0], [6, 7], [8, 9]]))


def _no_bags() -> Iterator[Compared]:
    none, thresholds = torch.zeros(1, dtype=torch.int64), REGIMES["mixed"].thresholds
    bins = bin_rows(none, 0, thresholds)
    found = embedding_pool_cuda(torch.ones(5, 2), none[:0], None, none, bins, thresholds, True)
    yield Compared("pooled entries", found, np.zeros((0, 2)))
