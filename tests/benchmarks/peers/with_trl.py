"""TRL: best-fit decreasing as ``pack_dataset(strategy="bfd")`` runs it.

In its favour: the events are nulls, so that it moves no data when it makes the packs, and all sequences are packed at
once. ``pack_dataset`` gives it 1000 at a time unless told otherwise: ``packs_of_default_batches`` is what that costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: ``batch_size`` of datasets' ``map``, which ``pack_dataset`` leaves as it is.
DEFAULT_BATCH = 1000


def table(lengths: NDArray[np.int32]) -> Any:
    """A pyarrow table with one list of nulls a sequence."""
    import pyarrow as pa

    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.nulls(int(offsets[-1])))
    return pa.table({"events": lists})


def packs(sequences: Any, capacity: int) -> int:
    """Packs of all sequences at once."""
    from trl.data_utils import _pack_bfd

    return len(_pack_bfd(sequences, capacity))


def packs_of_default_batches(lengths: NDArray[np.int32], capacity: int) -> int:
    """Packs when ``pack_dataset`` is left to its defaults."""
    starts = range(0, lengths.size, DEFAULT_BATCH)
    return sum(packs(table(lengths[start : start + DEFAULT_BATCH]), capacity) for start in starts)
