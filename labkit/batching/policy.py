"""BatchPolicy: the one object that the widget edits, the what-if scores, the sampler runs and the JSON stores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from labkit.batching import fields
from labkit.batching.strategies import STRATEGIES, Strategy, StrategySpec
from labkit.errors import PolicyError
from labkit.lengths.validate import MAX_LENGTH

DEFAULT_ROWS = 256
DEFAULT_TOKEN_BUDGET = 16_384
DEFAULT_MAX_ROWS = 65_536


class Overflow(StrEnum):
    """What happens to a sequence longer than the last bucket edge."""

    ERROR = "error"
    TRUNCATE = "truncate"  # its most recent events go to the last bucket
    DROP = "drop"  # it is left out, and counted
    SPLIT = "split"  # packed only: it is cut into pieces of at most one capacity, nothing is lost


class Oversize(StrEnum):
    """What happens to a bucket whose width is above the token budget."""

    ERROR = "error"
    SINGLE_ROW = "single_row"  # batches of one row, counted as over budget


class PadTo(StrEnum):
    """The width of a batch in the bucket strategies."""

    EDGE = "edge"  # the width of its bucket
    BATCH_MAX = "batch_max"  # its own longest row


class BatchOrder(StrEnum):
    """The order of the batches of an epoch in the bucket strategies."""

    SHUFFLED = "shuffled"
    GROUPED = "grouped"  # bucket after bucket, shortest first


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How an epoch is cut into batches. Immutable; ``dataclasses.replace`` makes variants.

    Only the fields that the strategy uses are validated (``STRATEGIES[strategy].fields``); enums are accepted as
    their string keys, NumPy integers as ints.

    Attributes:
        strategy: key of the strategy.
        rows: sequences a batch, in the strategies with fixed rows.
        bucket_edges: e1 < ... < eK, integers >= 1; bucket k holds e[k-1] < length <= e[k]; length 0 is in bucket 1.
        bucket_widths: padded width of each bucket, <= its edge (what lies above is truncated); None: the edges.
        token_budget: hard limit on a batch: rows * width (padded) or the sum of lengths (jagged).
        max_rows: most rows of a jagged batch.
        max_length: truncation cap, applied first; the most recent events are kept. None: no cap
            (``pad_recent``: ceil of the 99th percentile).
        overflow: lengths above the last edge (``packed``: the capacity): ``error``, ``truncate``, ``drop``, and
            ``split`` for ``packed`` alone.
        oversize: a width above the token budget: ``error``, or ``single_row``.
        pad_to: ``edge`` or ``batch_max``.
        static_shapes: every batch of a bucket has the same rows, the missing ones are ghost rows.
            None: on for ``bucket_graph``, off elsewhere.
        row_multiple: rows of a bucket are rounded down to it when at least one multiple fits the budget.
        length_multiple: padded widths are rounded up to it, after everything else.
        capacity: slots of a pack, in ``packed``. None: the longest length after the cap.
        max_sequences_per_pack: most sequences (or pieces of them) that share a pack; None: as many as fit.
        batch_order: ``shuffled`` or ``grouped``.
        shuffle: False keeps the given order (bucket after bucket).
        drop_last: leave out the last, partial batch (of each bucket); what is left out is counted.

    Raises:
        PolicyError: a field is not what its strategy can use; the message has the field, the value and the fix.
        EdgesError: edges or widths break the rules.
    """

    strategy: Strategy
    rows: int = DEFAULT_ROWS
    bucket_edges: tuple[int, ...] | None = None
    bucket_widths: tuple[int, ...] | None = None
    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_rows: int = DEFAULT_MAX_ROWS
    max_length: int | None = None
    overflow: Overflow = Overflow.ERROR
    oversize: Oversize = Oversize.ERROR
    pad_to: PadTo = PadTo.EDGE
    static_shapes: bool | None = None
    row_multiple: int = 1
    length_multiple: int = 1
    capacity: int | None = None
    max_sequences_per_pack: int | None = None
    batch_order: BatchOrder = BatchOrder.SHUFFLED
    shuffle: bool = True
    drop_last: bool = False

    def __post_init__(self) -> None:
        """Normalize and validate the fields that the strategy uses."""
        self._set("strategy", fields.choice("strategy", self.strategy, Strategy))
        used = self.spec.fields
        for name in ("rows", "token_budget", "max_rows", "row_multiple"):
            if name in used:
                self._set(name, fields.whole_number(name, getattr(self, name)))
        for name in ("max_length", "capacity", "max_sequences_per_pack", "length_multiple"):
            value = getattr(self, name)
            if name in used and not (name != "length_multiple" and value is None):
                self._set(name, fields.whole_number(name, value, most=MAX_LENGTH))
        for name, options in (
            ("overflow", Overflow),
            ("oversize", Oversize),
            ("pad_to", PadTo),
            ("batch_order", BatchOrder),
        ):
            if name in used:
                self._set(name, fields.choice(name, getattr(self, name), options))
        for name in ("shuffle", "drop_last"):
            if name in used:
                self._set(name, fields.flag(name, getattr(self, name)))
        if self.overflow is Overflow.SPLIT and "overflow" in used and self.strategy is not Strategy.PACKED:
            raise PolicyError(f"overflow 'split' is for packed; {self.strategy} takes 'error', 'truncate' or 'drop'.")
        if "bucket_edges" in used:
            self._check_buckets()
        for name in self.__slots__:
            if name != "strategy" and name not in used:
                self._set(name, fields.plain(getattr(self, name)))

    def _check_buckets(self) -> None:
        if self.bucket_edges is None:
            raise PolicyError(
                f"strategy {self.strategy} needs bucket_edges: pass optimal_edges(histogram, buckets).edges."
            )
        self._set("bucket_edges", fields.edges(self.bucket_edges))
        if self.bucket_widths is not None:
            self._set("bucket_widths", fields.widths(self.bucket_widths, self.bucket_edges))
        if self.static_shapes is not None:
            self._set("static_shapes", fields.flag("static_shapes", self.static_shapes))
        if self.strategy is Strategy.BUCKET_GRAPH and self.static_shapes is False:
            raise PolicyError(
                "bucket_graph needs static_shapes: a CUDA graph replays one shape. Use bucket_budget without."
            )
        if self.has_static_shapes and self.pad_to is PadTo.BATCH_MAX:
            raise PolicyError("pad_to='batch_max' makes shapes vary, static_shapes keeps them: choose one of the two.")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def spec(self) -> StrategySpec:
        """The row of the strategy table."""
        return STRATEGIES[self.strategy]

    @property
    def has_static_shapes(self) -> bool:
        """``static_shapes`` with its default resolved."""
        return self.strategy is Strategy.BUCKET_GRAPH if self.static_shapes is None else self.static_shapes

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain JSON types (enums as keys, tuples as lists)."""
        plain = {k: str(v) if isinstance(v, StrEnum) else v for k, v in asdict(self).items()}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}
