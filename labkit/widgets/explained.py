"""What a panel shows of an error: one line; a callback never raises."""

from __future__ import annotations

import logging

from labkit.errors import LabkitError

_log = logging.getLogger(__name__)


def explained(error: Exception) -> str:
    """What to show of an error: our own say it all; one that was not foreseen goes to the log as well."""
    if isinstance(error, LabkitError):
        return str(error)
    _log.error("the panel's worker failed", exc_info=error)
    return f"unexpected {type(error).__name__}: {error}"
