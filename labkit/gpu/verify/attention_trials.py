"""Trials of din_attention: masked softmax pooling and its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool_backward_cuda, attention_pool_cuda
from labkit.gpu.verify.far_trials import far_attention
from labkit.gpu.verify.ragged import (
    DIMS,
    EVENTS,
    FULL,
    FULL_OFFSETS,
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
from labkit.reference import attention as reference

_HOST = OFFSETS.numpy()
_EPS = ROUNDING[torch.float32]
#: Of CUDA's expf in units in the last place. Source: CUDA C++ Programming Guide, "Mathematical Functions".
_EXP_ULP = 2
#: The least normal float32: what is smaller, a weight too, is flushed to 0 by the GPU and spaced by a constant here.
_TINY = 2.0**-126

_IDS = np.repeat(np.arange(ROWS), LENGTHS)
_SIZES = np.resize([1, 80, 1000], ROWS)  # of the scores, row by row: small, large, and beyond the range of exp


def din_attention_trials() -> Iterator[Trial]:
    """Attention and its gradients in every regime, with masked events, masked rows, large scores and a NaN."""
    for dim in DIMS:
        for name, config in REGIMES.items():
            rows, sample = f"{name} rows, D={dim}", is_sample(name, dim)
            yield Trial(f"attention, {rows}", partial(_attention, config, dim), sample=sample)
            yield Trial(f"gradients, {rows}", partial(_gradients, config, dim), sample=sample)
    yield Trial(f"gradients, D={PAIR_DIM}", partial(_gradients, REGIMES["mixed"], PAIR_DIM))
    yield Trial("a workspace that is full", _full)
    yield Trial(f"attention, mixed rows, D={LARGE_DIM}", partial(_attention, REGIMES["mixed"], LARGE_DIM))
    yield Trial(f"gradients, mixed rows, D={LARGE_DIM}", partial(_gradients, REGIMES["mixed"], LARGE_DIM))
    for dtype in (torch.float16, torch.bfloat16):
        for dim in STORED_DIMS:
            yield Trial(f"{dtype} storage, D={dim}", partial(_stored, dtype, dim), sample=True)
    yield Trial("a score of infinity", _infinite, once=True)
    yield Trial("one sequence of 2**20 events", _million, once=True)
    yield Trial("no rows, no events", _nothing, once=True)
    yield from far_attention()


def masked_scores(sizes: Array = _SIZES) -> Tensor:
    """(T,) scores, a fifth of them masked, row 4 wholly; row 8 has a NaN."""
    scores = random(0, EVENTS) * torch.from_numpy(sizes[_IDS]).float()
    scores[random(1, EVENTS) < -0.84] = -torch.inf
    scores[OFFSETS[4] : OFFSETS[5]] = -torch.inf
    scores[OFFSETS[8] + 3] = torch.nan
    return scores


class ExactSoftmax:
    """What the reference says of the scores, and how far from it float32 may be.

    Attributes:
        result: of the reference.
        weights: (T,) of each event in its row, 0 where it is masked.
        relative: (T,) bound of the error of a weight: exponents are differences of rounded numbers, each followed by an
            exponential; online, a weight is rescaled whenever the maximum grows, at most once an event; and a sum of n.
    """

    def __init__(self, scores: Tensor, values: Tensor) -> None:
        self.result = reference.attention_pool(scores.numpy(), values.numpy(), _HOST)
        host, top, total = scores.double().numpy(), self.result.top[_IDS], self.result.total[_IDS]
        live = host != -np.inf
        away = np.where(live, host, 0) - np.where(live, top, 0)
        self.weights = np.where(live, np.exp(away) / np.where(live, total, 1), 0)
        largest = np.zeros(ROWS)
        np.maximum.at(largest, _IDS, np.abs(np.where(np.isfinite(host), host, 0)))
        self.relative = 2 * _EPS * (3 * largest[_IDS] + (_EXP_ULP + 3) * np.array(LENGTHS)[_IDS] + 8)

    def pooled(self, each: Array) -> Array:
        """(B, ...) sums over rows of the bounds of the weights times (T, ...) numbers."""
        bound = self.weights * self.relative
        weighted = bound.reshape(-1, *[1] * (each.ndim - 1)) * np.abs(np.nan_to_num(each))
        total = np.zeros((ROWS, *each.shape[1:]))
        np.add.at(total, _IDS, weighted)
        return total


@cache
def _case(dim: int, masked_nan: bool) -> tuple[Tensor, Tensor, ExactSoftmax]:
    scores, values = masked_scores(), random(2, EVENTS, dim)
    if masked_nan:
        values[OFFSETS[4] + 1] = torch.nan  # of a masked event: not looked at
    return scores, values, ExactSoftmax(scores, values)


def _attention(config: LaunchConfig, dim: int) -> Iterator[Compared]:
    scores, values, exact = _case(dim, True)
    out, top, total = attention_pool_cuda(scores, values, OFFSETS, bins_of(config), config.thresholds)
    yield Compared("pooled values", out, exact.result.out, exact.pooled(values.numpy()))
    of_total = exact.pooled(np.ones(EVENTS)) * exact.result.total
    yield Compared("sums of exponentials", total, exact.result.total, of_total)
    known = ~np.isnan(exact.result.total)  # the greatest score of a row with a NaN says nothing
    yield Compared("greatest scores", top[torch.from_numpy(known)], exact.result.top[known])


@cache
def _gradient_case(dim: int) -> tuple[tuple[Tensor, ...], tuple[Array, Array], tuple[Array, Array]]:
    scores, values, exact = _case(dim, False)
    grad = random(3, ROWS, dim)
    forward = [torch.from_numpy(part.astype(np.float32)) for part in exact.result]
    of_scores, of_values = reference.attention_pool_backward(grad.numpy(), scores.numpy(), values.numpy(), _HOST)
    each = np.abs(grad.numpy())[_IDS]
    inner = np.nan_to_num(each * (np.abs(values.numpy()) + np.abs(exact.result.out)[_IDS])).sum(1)
    score_bound = exact.weights * inner * (exact.relative + _EPS * (2 * dim + 4)) + _TINY * (1 + inner)
    value_bound = np.abs(of_values) * exact.relative[:, None] + _TINY * (1 + each)
    return (grad, *forward, scores, values), (of_scores, of_values), (score_bound, value_bound)


def _gradients(config: LaunchConfig, dim: int) -> Iterator[Compared]:
    given, expected, bounds = _gradient_case(dim)
    of_scores, of_values = attention_pool_backward_cuda(*given, OFFSETS, bins_of(config), config.thresholds)
    yield Compared("gradients of the scores", of_scores, expected[0], bounds[0])
    yield Compared("gradients of the values", of_values, expected[1], bounds[1])


def _stored(dtype: torch.dtype, dim: int) -> Iterator[Compared]:
    config, rounding = REGIMES["mixed"], ROUNDING[dtype]
    scores, values = masked_scores(np.ones(ROWS)).to(dtype), random(2, EVENTS, dim).to(dtype)
    exact = ExactSoftmax(scores.float(), values.float())
    out, top, total = attention_pool_cuda(scores, values, OFFSETS, bins_of(config), config.thresholds)
    in_float32 = exact.pooled(values.float().numpy())
    # below the least normal number a float16 is spaced by 2**-24
    bound = in_float32 + rounding * np.abs(exact.result.out) + 2.0**-25
    yield Compared("pooled values", out, exact.result.out, bound)
    grad = random(3, ROWS, dim).to(dtype)
    arguments = (grad, out, top, total, scores, values, OFFSETS, bins_of(config), config.thresholds)
    of_scores, of_values = attention_pool_backward_cuda(*arguments)
    wide = (grad.float().numpy(), scores.float().numpy(), values.float().numpy(), _HOST)
    of_score, expected = reference.attention_pool_backward(*wide)
    inner = np.nan_to_num(np.abs(wide[0])[_IDS] * (np.abs(wide[2]) + np.abs(exact.result.out)[_IDS])).sum(1)
    bound = exact.weights * inner * (exact.relative + rounding + _EPS * (2 * dim + 4))  # the row's output is rounded
    yield Compared("gradients of the scores", of_scores, of_score, bound + rounding * np.abs(of_score) + 2.0**-25)
    bound = np.abs(expected) * (exact.relative[:, None] + rounding) + 2.0**-25
    yield Compared("gradients of the values", of_values, expected, bound)


def _infinite() -> Iterator[Compared]:
    scores, offsets = torch.tensor([1.0, torch.inf, 2.0]), torch.tensor([0, 2, 3])
    thresholds = REGIMES["mixed"].thresholds
    out, _, _ = attention_pool_cuda(scores, torch.ones(3, 4), offsets, bin_rows(offsets, 0, thresholds), thresholds)
    yield Compared("pooled values", out, np.array([[np.nan] * 4, [1.0] * 4]))


def _full() -> Iterator[Compared]:
    scores, values = torch.zeros(17), torch.ones(17, 12)
    values[:16] = 18.0
    bins = bin_rows(FULL_OFFSETS, FULL.giants(17), FULL.thresholds)
    out, top, total = attention_pool_cuda(scores, values, FULL_OFFSETS, bins, FULL.thresholds)
    yield Compared("pooled values", out, np.full((1, 12), 17.0))  # (16 * 18 + 1) / 17
    yield Compared("greatest scores", top, np.zeros(1))
    yield Compared("sums of exponentials", total, np.full(1, 17.0))


def _million() -> Iterator[Compared]:
    events, config = MILLION, LaunchConfig()
    offsets, scores, values = torch.tensor([0, 0, events]), torch.zeros(events), torch.ones(events, 1)
    values[: events // 2] = 3.0
    bins = bin_rows(offsets, config.giants(events), config.thresholds)
    out, top, total = attention_pool_cuda(scores, values, offsets, bins, config.thresholds)
    yield Compared("pooled values", out, np.array([[0], [2]]))
    yield Compared("greatest scores", top, np.array([-np.inf, 0]))
    yield Compared("sums of exponentials", total, np.array([0, events]))


def _nothing() -> Iterator[Compared]:
    thresholds = REGIMES["mixed"].thresholds
    for rows in (0, 3):
        offsets = torch.zeros(rows + 1, dtype=torch.int64)
        bins = bin_rows(offsets, 0, thresholds)
        out, _, total = attention_pool_cuda(torch.zeros(0), torch.zeros(0, 8), offsets, bins, thresholds)
        yield Compared("pooled values", out, np.zeros((rows, 8)))
        yield Compared("sums of exponentials", total, np.zeros(rows))
