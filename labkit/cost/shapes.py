"""Shapes of batches, and the terms that costs are sums of. NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from labkit.batching.strategies import Layout


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Sizes of one batch, as a model sees them; what a layout does not have is 0.

    Attributes:
        rows: R, rows of the batch, ghost rows included; packed: packs.
        width: L, padded width, or the capacity of a pack.
        events: T, real events (a padded model computes all slots, whatever they hold).
        longest: events of the longest row, where a model goes step by step or pads to it by itself.
        segments: S, pieces of a packed batch.
        filled: rows with at least one event, of a packed sequence.
    """

    rows: float = 0
    width: float = 0
    events: float = 0
    longest: float = 0
    segments: float = 0
    filled: float = 0


@dataclass(frozen=True, eq=False, slots=True)
class Shapes:
    """Many shapes as columns, (n,) float64 each: the sizes of ``BatchShape``."""

    rows: NDArray[np.float64]
    width: NDArray[np.float64]
    events: NDArray[np.float64]
    longest: NDArray[np.float64]
    segments: NDArray[np.float64]
    filled: NDArray[np.float64]

    @classmethod
    def of(cls, shapes: Iterable[BatchShape]) -> Shapes:
        """The columns of a list of shapes."""
        listed = list(shapes)
        return cls(*(np.array([getattr(s, f.name) for s in listed], dtype=np.float64) for f in fields(BatchShape)))

    def __len__(self) -> int:
        """How many."""
        return self.rows.size


class Term(StrEnum):
    """A term of the basis. Every cost is a sum of terms with coefficients that the model alone decides."""

    ONE = "1"
    ROWS = "rows"
    SLOTS = "slots"  # rows x width
    SQUARES = "rows x width²"  # attention of every slot to every slot of its row
    EVENTS = "events"
    WIDTH = "width"  # positions, shared by all rows
    MASK = "width²"  # a causal mask, shared by all rows
    LONGEST = "longest"  # a recurrent network runs one kernel after another, as many as the longest row has events
    WINDOWS = "windows"  # as wide as the longest row, into which attention cuts a stream of jagged rows
    WINDOW_SLOTS = "windows x longest"
    WINDOW_SQUARES = "windows x longest²"
    SEGMENTS = "segments"  # pieces of packed rows
    FILLED = "filled rows"  # a packed sequence leaves empty rows out


def _windows(shapes: Shapes) -> NDArray[np.float64]:
    """Windows as wide as the longest row that hold all events, at least 1."""
    return np.maximum(1, np.ceil(shapes.events / np.maximum(1, shapes.longest)))


_VALUES: dict[Term, Callable[[Shapes], NDArray[np.float64]]] = {
    Term.ONE: lambda s: np.ones(len(s)),
    Term.ROWS: lambda s: s.rows,
    Term.SLOTS: lambda s: s.rows * s.width,
    Term.SQUARES: lambda s: s.rows * s.width * s.width,
    Term.EVENTS: lambda s: s.events,
    Term.WIDTH: lambda s: s.width,
    Term.MASK: lambda s: s.width * s.width,
    Term.LONGEST: lambda s: s.longest,
    Term.WINDOWS: _windows,
    Term.WINDOW_SLOTS: lambda s: _windows(s) * s.longest,
    Term.WINDOW_SQUARES: lambda s: _windows(s) * s.longest * s.longest,
    Term.SEGMENTS: lambda s: s.segments,
    Term.FILLED: lambda s: s.filled,
}

#: The basis of each layout: the terms that a model in it can have.
BASES: dict[Layout, tuple[Term, ...]] = {
    Layout.PADDED: (Term.ONE, Term.ROWS, Term.SLOTS, Term.SQUARES, Term.WIDTH, Term.MASK),
    Layout.JAGGED: (
        *(Term.ONE, Term.ROWS, Term.EVENTS),
        *(Term.LONGEST, Term.WINDOWS, Term.WINDOW_SLOTS, Term.WINDOW_SQUARES),
    ),
    Layout.SEGMENTED: (Term.ONE, Term.ROWS, Term.EVENTS),
    Layout.PACKED_ROWS: (Term.ONE, Term.ROWS, Term.SLOTS, Term.SQUARES, Term.WIDTH, Term.MASK, Term.SEGMENTS),
    Layout.PACKED_SEQUENCE: (Term.ONE, Term.ROWS, Term.EVENTS, Term.LONGEST, Term.FILLED),
    Layout.SPARSE: (Term.ONE, Term.ROWS, Term.EVENTS),
}


def terms_of(shapes: Shapes, basis: tuple[Term, ...]) -> NDArray[np.float64]:
    """(n, terms) values of the terms; whole numbers below 2**53 are exact."""
    return np.stack([_VALUES[term](shapes) for term in basis], axis=1)
