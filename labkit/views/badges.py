"""Badges: the letter behind every number that says where it comes from."""

from __future__ import annotations

from labkit.provenance import Origin

#: Badge of each origin, and what the legend says of it.
BADGES: dict[Origin, tuple[str, str]] = {
    Origin.EXACT: ("e", "exact: arithmetic on these lengths"),
    Origin.MODELLED: ("m", "modelled: an estimate or a bound (hover for which)"),
    Origin.MEASURED: ("✓", "measured: on this device, now"),
    Origin.RECORDED: ("r", "recorded: a stored run"),
}
