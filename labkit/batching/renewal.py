"""How many sequences fit a budget of real events: the expected rows of a greedily filled batch, by renewal theory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Steps that the token budget is divided into. A length falls between two of them and is shared out so that the mean
#: stays exact. One less than a power of two, for the transforms.
_STEPS = 2047
#: The aliases of the transform below are damped to this factor.
_DAMPING = 1e-12
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
    sequence that did not fit the one before, and long ones are more often that: f is iterated to its fixed point.

    Cost: a few transforms of 8192 points; 1-4 ms, whatever the number of lengths.
    Source: W. Feller, An Introduction to Probability Theory and Its Applications, vol. 2, chapter XI, Renewal Theory.
    """
    steps = min(_STEPS, budget)
    law = _on_steps(values, counts / counts.sum(), budget / steps, steps)
    size = 1 << (4 * steps + 3).bit_length()
    damp = _DAMPING ** (np.arange(steps + 1) / size)  # onto a circle inside the unit disc, where the series converges
    transform = np.fft.rfft(law * damp, size)
    visits = (1 - transform**max_rows) / (1 - transform)
    visits_but_last = (1 - transform ** (max_rows - 1)) / (1 - transform)
    first = law * np.arange(steps + 1)
    first /= first.sum()
    rows = 0.0
    for _ in range(_ROUNDS):
        start = np.fft.rfft(first * damp, size)
        before, rows = rows, float((np.fft.irfft(start * visits, size)[: steps + 1] / damp).sum())
        if abs(rows - before) < _TOLERANCE * rows:
            break
        filled = np.cumsum(np.fft.irfft(start * visits_but_last, size)[: steps + 1] / damp)
        # a sequence of x steps does not fit behind a sum above steps - x; after max_rows any sequence comes next
        beyond = filled[-1] - filled[::-1]
        first = law * (beyond + max(0.0, rows - float(filled[-1])))
        first /= first.sum()
    return max(1.0, rows)


def _on_steps(values: NDArray[np.int64], share: NDArray[np.float64], step: float, steps: int) -> NDArray[np.float64]:
    """(steps + 1,) law of the length in steps; each length is shared out between its two neighbours."""
    place = values / step
    low = np.minimum(np.floor(place).astype(np.int64), steps)
    part = place - low
    law = np.zeros(steps + 2)
    np.add.at(law, low, share * (1 - part))
    np.add.at(law, low + 1, share * part)
    law[steps] += law[steps + 1]
    return law[: steps + 1]
