"""The trials of each op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from labkit.gpu.verify.attention_trials import din_attention_trials
from labkit.gpu.verify.copy_trials import jagged_trials, padded_trials
from labkit.gpu.verify.embedding_trials import embedding_pool_trials
from labkit.gpu.verify.segment_trials import bin_rows_trials, segment_pool_trials
from labkit.gpu.verify.trial import Trial

_TRIALS: dict[str, Callable[[], Iterator[Trial]]] = {
    "bin_rows": bin_rows_trials,
    "jagged_to_padded": padded_trials,
    "padded_to_jagged": jagged_trials,
    "segment_pool": segment_pool_trials,
    "embedding_pool": embedding_pool_trials,
    "din_attention": din_attention_trials,
}


@cache
def trials(op: str) -> tuple[Trial, ...]:
    """The trials of an op of the catalog, the ones that find most first."""
    return tuple(_TRIALS[op]())
