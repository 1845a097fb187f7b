"""Trials of segment_pool and bin_rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows, bin_rows_cuda
from labkit.gpu.ops.segment_pool import (
    segment_max_backward_cuda,
    segment_max_cuda,
    segment_sum_backward_cuda,
    segment_sum_cuda,
)
from labkit.gpu.regimes import HEADER
from labkit.gpu.verify.far_trials import far_segments
from labkit.gpu.verify.ragged import (
    DIMS,
    EVENTS,
    FULL,
    FULL_OFFSETS,
    LARGE_DIM,
    LENGTHS,
    MILLION,
    OFFSETS,
    REGIMES,
    ROUNDING,
    ROWS,
    STORED_DIMS,
    random,
)
from labkit.gpu.verify.trial import Array, Compared, Trial
from labkit.reference import segments as reference

_HOST = OFFSETS.numpy()
_EPS = ROUNDING[torch.float32]


def is_sample(regime: str, dim: int) -> bool:
    """Rows of every regime, four features a lane and one."""
    return regime == "mixed" and dim in DIMS[:2]


@cache
def bins_of(config: LaunchConfig) -> Tensor:
    """Bins of the ragged rows, by torch."""
    bins: Tensor = bin_rows(OFFSETS, config.giants(EVENTS), config.thresholds)
    return bins


def segment_pool_trials() -> Iterator[Trial]:
    """Sum, mean, maximum and their gradients, in every regime."""
    for dim in DIMS:
        for name, config in REGIMES.items():
            rows, sample = f"{name} rows, D={dim}", is_sample(name, dim)
            yield Trial(f"sum, {rows}", partial(_sums, config, dim, False), sample=sample)
            yield Trial(f"mean, {rows}", partial(_sums, config, dim, True), sample=sample)
            yield Trial(f"max, {rows}", partial(_maxima, config, dim), sample=sample)
            yield Trial(f"gradients, {rows}", partial(_gradients, config, dim), sample=sample)
    for name, call in (("sum", partial(_sums, mean=False)), ("max", _maxima), ("gradients", _gradients)):
        yield Trial(f"{name}, mixed rows, D={LARGE_DIM}", partial(call, REGIMES["mixed"], LARGE_DIM))
    for dtype in (torch.float16, torch.bfloat16):
        for dim in STORED_DIMS:
            yield Trial(f"{dtype} storage, D={dim}", partial(_stored, dtype, dim), sample=True)
    yield Trial("a workspace that is full", _full)
    yield Trial("one sequence of 2**20 events", _million, once=True)
    yield Trial("no rows, no events", _nothing, once=True)
    yield from far_segments()


def _bound(size: Array) -> Array:
    """n additions of float32 and a division of numbers whose absolute sum is ``size``."""
    bound: Array = _EPS * size * (np.array(LENGTHS)[:, None] + 2)
    return bound


@cache
def _sum_case(dim: int, mean: bool) -> tuple[Tensor, Array, Array]:
    values = random(0, EVENTS, dim)
    values[OFFSETS[6], 0] = torch.nan  # stays in row 6
    size = reference.segment_sum(values.abs().numpy(), _HOST, mean=mean)
    return values, reference.segment_sum(values.numpy(), _HOST, mean=mean), _bound(size)


def _sums(config: LaunchConfig, dim: int, mean: bool) -> Iterator[Compared]:
    values, expected, bound = _sum_case(dim, mean)
    found = segment_sum_cuda(values, OFFSETS, bins_of(config), config.thresholds, mean)
    yield Compared("means" if mean else "sums", found, expected, bound)


@cache
def _max_case(dim: int) -> tuple[Tensor, Array, Array]:
    values = random(1, EVENTS, dim).round()  # so that there are equals, of which the first counts
    values[OFFSETS[6] + 40, 0] = values[OFFSETS[6] + 90, 0] = torch.nan
    values[OFFSETS[1] : OFFSETS[2]] = -torch.inf
    return values, *reference.segment_max(values.numpy(), _HOST)


def _maxima(config: LaunchConfig, dim: int) -> Iterator[Compared]:
    values, expected, places = _max_case(dim)
    found, at = segment_max_cuda(values, OFFSETS, bins_of(config), config.thresholds)
    yield Compared("maxima", found, expected)
    yield Compared("their places", at, places)


@cache
def _gradient_case(dim: int) -> tuple[Tensor, Tensor, Array, Array, Array]:
    grad = random(2, ROWS, dim)
    _, _, places = _max_case(dim)
    of_sum, of_mean = (reference.segment_sum_backward(grad.numpy(), _HOST, mean=mean) for mean in (False, True))
    of_max = reference.segment_max_backward(grad.numpy(), places, _HOST)
    return grad, torch.from_numpy(places), of_sum, of_mean, of_max


def _gradients(config: LaunchConfig, dim: int) -> Iterator[Compared]:
    grad, places, *of_sums, of_max = _gradient_case(dim)
    for mean, expected in zip((False, True), of_sums, strict=True):
        found = segment_sum_backward_cuda(grad, OFFSETS, bins_of(config), config.thresholds, EVENTS, mean)
        yield Compared(f"gradients of {'means' if mean else 'sums'}", found, expected, _EPS * np.abs(expected) * 2)
    found = segment_max_backward_cuda(grad, places, OFFSETS, bins_of(config), config.thresholds, EVENTS)
    yield Compared("gradients of maxima", found, of_max)


def _stored(dtype: torch.dtype, dim: int) -> Iterator[Compared]:
    config = REGIMES["mixed"]
    values, bins = random(3, EVENTS, dim).to(dtype), bins_of(config)
    wide = values.float().numpy()
    expected = reference.segment_sum(wide, _HOST, mean=True)
    in_float32 = _bound(reference.segment_sum(np.abs(wide), _HOST, mean=True))
    found = segment_sum_cuda(values, OFFSETS, bins, config.thresholds, True)
    # below the least normal number a float16 is spaced by 2**-24
    yield Compared("means", found, expected, in_float32 + ROUNDING[dtype] * np.abs(expected) + 2.0**-25)
    top, at = segment_max_cuda(values, OFFSETS, bins, config.thresholds)
    maxima, places = reference.segment_max(wide, _HOST)
    yield Compared("maxima", top, maxima)
    yield Compared("their places", at, places)
    grad = random(4, ROWS, dim).to(dtype)
    each = reference.segment_sum_backward(grad.float().numpy(), _HOST, mean=True)
    found = segment_sum_backward_cuda(grad, OFFSETS, bins, config.thresholds, EVENTS, True)
    yield Compared("gradients of means", found, each, (ROUNDING[dtype] + 2 * _EPS) * np.abs(each) + 2.0**-25)
    found = segment_max_backward_cuda(grad, at, OFFSETS, bins, config.thresholds, EVENTS)
    yield Compared("gradients of maxima", found, reference.segment_max_backward(grad.float().numpy(), places, _HOST))


def _full() -> Iterator[Compared]:
    values, host = random(5, 17, 12), FULL_OFFSETS.numpy()
    bins = bin_rows(FULL_OFFSETS, FULL.giants(17), FULL.thresholds)
    found = segment_sum_cuda(values, FULL_OFFSETS, bins, FULL.thresholds, False)
    size = reference.segment_sum(values.abs().numpy(), host)
    yield Compared("sums", found, reference.segment_sum(values.numpy(), host), _EPS * size * 19)
    top, at = segment_max_cuda(values, FULL_OFFSETS, bins, FULL.thresholds)
    maxima, places = reference.segment_max(values.numpy(), host)
    yield Compared("maxima", top, maxima)
    yield Compared("their places", at, places)


def _million() -> Iterator[Compared]:
    events, config = MILLION, LaunchConfig()
    offsets, values = torch.tensor([0, 0, events, events]), torch.ones(events, 1)
    values[777_777] = 3.0
    for giants in (config.giants(events), 0):
        rows = (offsets, bin_rows(offsets, giants, config.thresholds), config.thresholds)
        yield Compared("sums", segment_sum_cuda(values, *rows, False), np.array([[0], [events + 2], [0]]))
        yield Compared("means", segment_sum_cuda(values, *rows, True), np.array([[0], [1 + 2 / events], [0]]))
        top, at = segment_max_cuda(values, *rows)
        yield Compared("maxima", top, np.array([[0], [3], [0]]))
        yield Compared("their places", at, np.array([[-1], [777_777], [-1]]))
        grad = torch.ones(3, 1)
        found = segment_sum_backward_cuda(grad, *rows, events, True)
        yield Compared("gradients of means", found, np.full((events, 1), 1 / events))
        found = segment_max_backward_cuda(grad, at, *rows, events)
        expected = np.zeros((events, 1))
        expected[777_777] = 1
        yield Compared("gradients of maxima", found, expected)


def _nothing() -> Iterator[Compared]:
    thresholds = REGIMES["mixed"].thresholds
    for rows in (0, 3):
        offsets = torch.zeros(rows + 1, dtype=torch.int64)
        bins, values = bin_rows(offsets, 0, thresholds), torch.zeros(0, 8)
        yield Compared("sums", segment_sum_cuda(values, offsets, bins, thresholds, True), np.zeros((rows, 8)))
        top, at = segment_max_cuda(values, offsets, bins, thresholds)
        yield Compared("maxima", top, np.zeros((rows, 8)))
        yield Compared("their places", at, np.full((rows, 8), -1))


# --- bin_rows


def bin_rows_trials() -> Iterator[Trial]:
    """Every regime; several tiles of rows; no room for giants."""
    for name, config in REGIMES.items():
        yield Trial(f"{name} rows", partial(_bins, "ragged", config, None), sample=name == "mixed")
    yield Trial("many rows of all lengths", partial(_bins, "many", REGIMES["mixed"], None), sample=True)
    yield Trial("more giants than threads", partial(_bins, "giants", LaunchConfig(0, 0, 2), None))
    yield Trial("one giant more than threads", partial(_bins, "257 giants", LaunchConfig(0, 0, 2), None))
    yield Trial("room for one giant", partial(_bins, "one giant", FULL, None))
    yield Trial("more tiles of rows than warps", partial(_bins, "20000", REGIMES["default"], None))
    yield Trial("no room for giants", partial(_bins, "ragged", REGIMES["mixed"], 0))
    yield Trial("no rows", partial(_bins, "none", REGIMES["mixed"], 0), once=True)
    yield Trial("rows of more than 2**32 events", partial(_bins, "far", LaunchConfig(3, 33, 10**6), 3))


@cache
def _offsets(kind: str) -> Tensor:
    match kind:
        case "ragged":
            return OFFSETS
        case "many":
            lengths = torch.from_numpy(np.random.default_rng(0).integers(0, 9, 2500) ** 3)
        case "giants":
            lengths = torch.from_numpy(np.random.default_rng(1).integers(0, 9, 700))
        case "257 giants":
            lengths = torch.full((257,), 3)
        case "one giant":
            return FULL_OFFSETS
        case "far":
            lengths = torch.tensor([3, 2**33 + 1, 0, 2**32 + 2, 33, 40, 2**31 + 7])
        case "20000":
            lengths = torch.from_numpy(np.random.default_rng(2).integers(0, 40, 20_000))
        case _:
            lengths = torch.zeros(0, dtype=torch.int64)
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


@cache
def _expected_bins(kind: str, config: LaunchConfig, giants: int) -> Array:
    return reference.bin_rows(_offsets(kind).numpy(), giants, *config.thresholds)


def _bins(kind: str, config: LaunchConfig, room: int | None) -> Iterator[Compared]:
    offsets = _offsets(kind)
    giants = config.giants(int(offsets[-1])) if room is None else room
    found, expected = bin_rows_cuda(offsets, giants, config.thresholds), _expected_bins(kind, config, giants)
    first, order = HEADER + int(expected[0]) + 1, HEADER + giants + 1  # what lies between is never read
    yield Compared("ends of the regimes, pieces", found[:HEADER], expected[:HEADER])
    yield Compared("first pieces of giants", found[HEADER:first], expected[HEADER:first])
    yield Compared("order of the rows", found[order:], expected[order:])
