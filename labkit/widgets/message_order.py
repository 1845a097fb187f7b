"""What the page sends is handled in the order it was sent in, whichever widgets it is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets as W


def keep_order(widgets: Iterable[W.Widget]) -> None:
    """Have all messages of widgets handled on the (sub)shell that the page names.

    ipykernel 7.4 hands a message to the one that last published on the same comm instead. A field that has been changed
    before is then on another thread than a button that has not, and a click may overtake the number typed before it.

    Args:
        widgets: each with a comm of its own; where there is no kernel nothing is done.
    """
    for widget in widgets:
        comm: Any = widget.comm
        route = getattr(comm, "_reply_subshell_for", None)
        if route is not None:
            comm._reply_subshell_for = _named_by_the_page(comm, route)


def _named_by_the_page(comm: Any, route: Any) -> Any:
    def routed(data: Any, named: str | None) -> str | None:
        comm.__dict__.pop("_reply_subshell_id", None)  # who published last; replies to requests keep their own way
        found: str | None = route(data, named)
        return found

    return routed
