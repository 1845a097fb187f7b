"""Quantile edges as most people make them: pandas.qcut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def edges(lengths: NDArray[np.int32], buckets: int) -> list[float]:
    """Upper-inclusive boundaries, the longest last; where quantiles coincide, fewer than asked."""
    import pandas as pd

    _, bounds = pd.qcut(lengths, buckets, retbins=True, duplicates="drop")
    return [float(bound) for bound in bounds[1:]]
