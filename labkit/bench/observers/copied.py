"""Copied: how many bytes a run copies to its device."""

from __future__ import annotations

from labkit.bench.observers.base import Observer
from labkit.provenance import Figure, Origin


class Copied(Observer):
    """Counts the bytes of the batches that were moved; whoever moves one says how large it was."""

    def __init__(self) -> None:
        """Nothing copied yet."""
        self._bytes: int | None = None

    def before_run(self) -> None:
        """Forget what the warm-up copied."""
        self._bytes = None

    def add(self, size: int) -> None:
        """A batch of ``size`` bytes was copied to the device."""
        self._bytes = size + (self._bytes or 0)

    def figures(self) -> dict[str, Figure]:
        """``copied_bytes`` of the run; none where nothing has to be copied."""
        if self._bytes is None:
            why = "nothing is copied: the model runs where the batches are made"
            return {"copied_bytes": Figure(None, "bytes", None, why)}
        return {"copied_bytes": Figure(self._bytes, "bytes", Origin.MEASURED, "host to device")}
