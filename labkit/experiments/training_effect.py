"""What batching does to training: the same small model under four orders of the same data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from labkit.batching.edges import optimal_edges
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchOrder, BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.lengths.histogram import LengthHistogram

ITEMS, WIDTH = 400, 16


class Order(StrEnum):
    """How the sequences of an epoch meet the model."""

    RANDOM = "random"  # shuffled, fixed rows
    BUCKETS = "buckets, shuffled"  # one bucket a batch, batches in random order
    GROUPED = "buckets, grouped"  # one bucket a batch, bucket after bucket
    SORTED = "sorted"  # by length, never shuffled


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """What was measured under one order.

    Attributes:
        order: the order.
        gradient_noise: mean squared distance of a batch's gradient from the gradient of all data, in units of the
            squared norm of the latter, at the start of training.
        padding_ratio: of the epoch's batches, padded to their own longest row.
        sequences_seen: (S,) where the loss was looked at.
        losses: (S,) mean loss of the held-out sequences there.
    """

    order: Order
    gradient_noise: float
    padding_ratio: float
    sequences_seen: tuple[int, ...]
    losses: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Clicks:
    """Made-up histories and answers; the answer depends on the items and on the length, as it does in real life.

    Attributes:
        items: (T,) int64, all histories end to end.
        offsets: (N + 1,) int64.
        answers: (N,) float32, 0 or 1.
    """

    items: torch.Tensor
    offsets: torch.Tensor
    answers: torch.Tensor

    def batch(self, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Items and offsets of some rows for an EmbeddingBag, and their answers."""
        index = torch.from_numpy(np.array(rows))
        starts, lengths = self.offsets[index], self.offsets[index + 1] - self.offsets[index]
        ends = torch.cumsum(lengths, 0)
        where = torch.repeat_interleave(starts - (ends - lengths), lengths) + torch.arange(int(ends[-1]))
        return self.items[where], torch.cat([ends.new_zeros(1), ends]), self.answers[index]


class PooledTower(nn.Module):
    """Mean of item embeddings and the log of the length, then one linear layer: convex enough to compare orders."""

    def __init__(self) -> None:
        """Make the layers from torch's current seed."""
        super().__init__()
        self.embedding = nn.EmbeddingBag(ITEMS, WIDTH, mode="mean", include_last_offset=True)
        self.head = nn.Linear(WIDTH + 1, 1)

    def forward(self, items: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """(B,) logits of B histories given as items (T,) and offsets (B + 1,)."""
        size = torch.log1p((offsets[1:] - offsets[:-1]).float()).unsqueeze(1)
        return self.head(torch.cat([self.embedding(items, offsets), size - 3.0], dim=1)).squeeze(1)  # type: ignore[no-any-return]


def compare_orders(
    lengths: NDArray[np.int64], *, rows: int = 64, buckets: int = 8, epochs: int = 3, seed: int = 0
) -> tuple[OrderEffect, ...]:
    """Train the same model from the same start under each order, and measure the noise of its gradient.

    Args:
        lengths: (N,) of the histories to make up; a fifth is held out.
        rows: sequences a batch.
        buckets: of the bucket orders, with optimal edges.
        epochs: passes over the data.
        seed: of data, model and shuffles.

    Cost: 4 x epochs passes over N short histories on the CPU; some seconds for N = 20 000.
    """
    data = make_clicks(lengths, seed)
    held_out = np.arange(0, lengths.size, 5)
    train = np.setdiff1d(np.arange(lengths.size), held_out)
    return tuple(_effect(order, data, lengths, train, held_out, rows, buckets, epochs, seed) for order in Order)


def make_clicks(lengths: NDArray[np.int64], seed: int) -> Clicks:
    """Make up histories of the given lengths: answers follow the taste of the items and the length of the history."""
    rng = np.random.default_rng((seed, 1))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    taste = rng.normal(size=ITEMS)
    leaning = rng.normal(size=lengths.size)  # of each user; its items are drawn around it
    centre = np.searchsorted(np.sort(taste), leaning)
    items = np.repeat(centre, lengths) + rng.integers(-60, 61, size=int(offsets[-1]))
    items = np.argsort(taste)[np.clip(items, 0, ITEMS - 1)]
    logit = 1.5 * leaning + 0.8 * (np.log1p(lengths) - np.log1p(lengths).mean())
    answers = rng.random(lengths.size) < 1 / (1 + np.exp(-logit))
    return Clicks(torch.from_numpy(items), torch.from_numpy(offsets), torch.from_numpy(answers.astype(np.float32)))


def order_policy(order: Order, lengths: NDArray[np.int64], rows: int, buckets: int) -> BatchPolicy:
    """The batch policy that makes an order."""
    match order:
        case Order.RANDOM:
            return BatchPolicy(Strategy.PAD_BATCH, rows=rows)
        case Order.SORTED:
            return BatchPolicy(Strategy.PAD_BATCH, rows=rows, shuffle=False)
        case Order.BUCKETS | Order.GROUPED:
            edges = optimal_edges(LengthHistogram.from_lengths(lengths), buckets).edges
            how = BatchOrder.SHUFFLED if order is Order.BUCKETS else BatchOrder.GROUPED
            return BatchPolicy(Strategy.BUCKET_ROWS, rows=rows, bucket_edges=edges, batch_order=how)


def _effect(
    order: Order,
    data: Clicks,
    lengths: NDArray[np.int64],
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    rows: int,
    buckets: int,
    epochs: int,
    seed: int,
) -> OrderEffect:
    own = train[np.argsort(lengths[train], kind="stable")] if order is Order.SORTED else train
    policy = order_policy(order, lengths[own], rows, buckets)
    plans = [plan_epoch(lengths[own], policy, seed=seed, epoch=e) for e in range(epochs)]
    with torch.random.fork_rng(devices=[]):  # the caller's own random numbers stay as they are
        torch.manual_seed(seed)
        model = PooledTower()
    noise = _gradient_noise(model, data, [own[b] for b in plans[0]])
    looks, losses = _train(model, data, ([own[b] for b in plan] for plan in plans), held_out, own.size)
    return OrderEffect(order, noise, plans[0].padding_ratio, tuple(looks), tuple(losses))


def _gradient_noise(model: PooledTower, data: Clicks, batches: list[NDArray[np.int64]]) -> float:
    """Mean over sequences of |g_batch - g|^2 / |g|^2, g being the gradient of all sequences together."""
    sizes = torch.tensor([float(b.size) for b in batches])
    gradients = torch.stack([_gradient(model, data, b) for b in batches])
    weights = sizes / sizes.sum()
    whole = (weights[:, None] * gradients).sum(0)
    spread = (weights * ((gradients - whole) ** 2).sum(1)).sum()
    return float(spread / (whole**2).sum())


def _gradient(model: PooledTower, data: Clicks, rows: NDArray[np.int64]) -> torch.Tensor:
    model.zero_grad()
    _loss(model, data, rows).backward()  # type: ignore[no-untyped-call]
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def _loss(model: PooledTower, data: Clicks, rows: NDArray[np.int64]) -> torch.Tensor:
    items, offsets, answers = data.batch(rows)
    return nn.functional.binary_cross_entropy_with_logits(model(items, offsets), answers)


def _train(
    model: PooledTower,
    data: Clicks,
    epochs: Iterable[list[NDArray[np.int64]]],
    held_out: NDArray[np.int64],
    sequences: int,
) -> tuple[list[int], list[float]]:
    """Plain SGD; the held-out loss at about ten places of an epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    looks, losses, seen, next_look = [0], [_held_out_loss(model, data, held_out)], 0, 0
    for batches in epochs:
        for rows in batches:
            optimizer.zero_grad()
            _loss(model, data, rows).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            seen += rows.size
            if seen >= next_look:
                looks.append(seen)
                losses.append(_held_out_loss(model, data, held_out))
                next_look = seen + sequences // 10
    return looks, losses


@torch.no_grad()
def _held_out_loss(model: PooledTower, data: Clicks, rows: NDArray[np.int64]) -> float:
    return float(_loss(model, data, rows))


def sample_lengths(histogram: LengthHistogram, sequences: int, seed: int) -> NDArray[np.int64]:
    """Lengths drawn from a histogram, at least 1 event each; all of them where it holds no more than that."""
    rng = np.random.default_rng((seed, 2))
    filled = histogram.values > 0
    values, counts = histogram.values[filled], histogram.counts[filled]
    if int(counts.sum()) <= sequences:
        return rng.permutation(np.repeat(values, counts))
    return rng.choice(values, size=sequences, p=counts / counts.sum())
