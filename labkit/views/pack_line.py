"""What packs are like, in a line: how many, how close to the fewest, how much of one is a single user."""

from __future__ import annotations

from labkit.batching.what_if import WhatIf
from labkit.units import counted, format_count, format_share


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
        return f"{format_count(w.packs)} pack{'' if w.packs == 1 else 's'}, largest user {mean} of a pack on average"
    packs = f"{counted(w.packs, 'pack')} of {counted(own.pieces, 'piece')}"
    return (
        f"{packs}, at most {format_share(own.gap)} above the fewest possible ({own.lower_bound:,}); the largest user "
        f"has {format_share(own.largest_user_share_mean)} of a pack's events on average, "
        f"{format_share(own.largest_user_share_max)} at most; sum of squared lengths, max / mean over packs: "
        f"{own.balance:.2f}"
    )
