"""What packs are like, in a line: how many, how close to the fewest, how much of one is a single user."""

from __future__ import annotations

from labkit.batching.what_if import WhatIf
from labkit.units import format_count, format_share


def pack_line(w: WhatIf, *, short: bool = False) -> str | None:
    """The packs of a what-if in words; None where nothing is packed.

    Args:
        w: the figures.
        short: the two that decide, for a cell of a table.
    """
    if w.packs is None or w.packing is None:
        return None
    own = w.packing
    if short:
        mean = format_share(own.largest_user_share_mean)
        return f"{format_count(w.packs)} packs, largest user {mean} of a pack on average"
    return (
        f"{w.packs:,} packs of {own.pieces:,} pieces, at most {format_share(own.gap)} above the fewest possible "
        f"({own.lower_bound:,}); the largest user has {format_share(own.largest_user_share_mean)} of a pack's events "
        f"on average, {format_share(own.largest_user_share_max)} at most; sum of squared lengths, max / mean over "
        f"packs: {own.balance:.2f}"
    )
