"""How many sequences fit a budget of real events: the expected rows of a greedily filled batch, by renewal theory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The most steps that the token budget is divided into, each a power of two of events, so that round lengths and
#: budgets stay commensurable. A length between two steps is shared out so that the mean stays exact.
_STEPS = 8192
#: Where few lengths make up the data, whether k of them fit the budget to the event matters: finer steps.
_FINE_STEPS, _FEW = 32_768, 64
#: The aliases of the transform below are damped to this factor.
_DAMPING = 1e-9
#: Two rounds of the fixed point that differ by less than this share end it; the estimate is meant to be within 1 %.
_TOLERANCE = 1e-4
_ROUNDS = 40


def rows_per_batch(values: NDArray[np.int64], counts: NDArray[np.int64], budget: int, max_rows: int) -> float:
    """Expected sequences in a batch that is filled, in shuffled order, until the next one would not fit.

    Args:
        values: (m,) int64 ascending, lengths, the longest at most ``budget`` and above 0.
        counts: (m,) int64, sequences of each length.
        budget: most events of a batch.
        max_rows: most sequences of a batch.

    Returns:
        The mean over batches in the long run.

    With p the law of the length and f that of a batch's first sequence, the sums s of its first 1 .. R sequences have
    the masses f (1 + p + ... + p^(R-1)) = f (1 - p^R) / (1 - p), products being convolutions. A batch starts with the
    sequence that did not fit the one before, and long ones are more often that: f is the fixed point of that map. Where
    long and short starts take turns the plain iteration swings for ever, so that each round takes a secant step.

    Cost: a few transforms of 16 384 points, 1-2 ms whatever the number of lengths; up to 65 536 where those are few.
    Source: W. Feller, An Introduction to Probability Theory and Its Applications, vol. 2, chapter XI, Renewal Theory;
        D. G. Anderson, Iterative Procedures for Nonlinear Integral Equations, 1965 (the step, with one term).
    """
    most = _FINE_STEPS if values.size <= _FEW else _STEPS
    step = 1 << max(0, -(-budget // most) - 1).bit_length()
    steps = budget // step
    law = _on_steps(values, counts / counts.sum(), step, steps)
    size = 1 << (2 * steps - 1).bit_length()
    damp = _DAMPING ** (np.arange(steps + 1) / size)  # onto a circle inside the unit disc, where the series converges
    transform = np.fft.rfft(law * damp, size)
    series = 1 / (1 - transform)
    power = transform ** (max_rows - 1)
    visits, visits_but_last = (1 - power * transform) * series, (1 - power) * series
    first = law * np.arange(steps + 1)
    first /= first.sum()
    rows, last = 0.0, None
    for _ in range(_ROUNDS):
        start = np.fft.rfft(first * damp, size)
        before, rows = rows, float((np.fft.irfft(start * visits, size)[: steps + 1] / damp).sum())
        if abs(rows - before) < _TOLERANCE * rows:
            break
        filled = np.cumsum(np.fft.irfft(start * visits_but_last, size)[: steps + 1] / damp)
        # a sequence of x steps does not fit behind a sum above steps - x; after max_rows any sequence comes next
        beyond = filled[-1] - filled[::-1]
        following = law * (beyond + max(0.0, rows - float(filled[-1])))
        following /= following.sum()
        first, last = _secant(first, following, last), (first, following)
    return max(1.0, rows)


def _secant(
    first: NDArray[np.float64],
    following: NDArray[np.float64],
    last: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
) -> NDArray[np.float64]:
    """The next law to try, from this pair of a law and what it maps to, and the pair of the round before."""
    if last is None:
        return following
    miss = following - first
    change = miss - (last[1] - last[0])
    square = float(change @ change)
    if square == 0.0:
        return following
    tried: NDArray[np.float64] = np.maximum(following - float(miss @ change) / square * (following - last[1]), 0.0)
    tried /= tried.sum()
    return tried


def _on_steps(values: NDArray[np.int64], share: NDArray[np.float64], step: int, steps: int) -> NDArray[np.float64]:
    """(steps + 1,) law of the length in steps; each length is shared out between its two neighbours."""
    low = np.minimum(values // step, steps)
    part = np.minimum(values / step - low, 1.0)
    law: NDArray[np.float64] = np.zeros(steps + 2)
    np.add.at(law, low, share * (1 - part))
    np.add.at(law, low + 1, share * part)
    law[steps] += law[steps + 1]
    return law[: steps + 1]
