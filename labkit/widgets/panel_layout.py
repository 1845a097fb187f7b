"""Where the parts of the tuning panel stand, and how all of them are found again."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as W

from labkit.experiments.scores import Scoreboard
from labkit.lengths.histogram import LengthHistogram
from labkit.views.palette import CSS
from labkit.widgets.fit_width import FitWidth

_STYLE = (
    f"<style>\n{CSS}"
    """.labkit-panel .labkit-heading { text-align: left; font-weight: 600; background: transparent; padding: 0 2px;
  color: var(--jp-ui-font-color1, #222); border-bottom: 1px solid rgba(127, 127, 127, .3); box-shadow: none; }
.labkit-panel .labkit-heading:focus-visible { outline: 2px solid var(--labkit-ring); outline-offset: -2px; }
.labkit-panel .labkit-summary { display: flex; flex-wrap: wrap; }
.labkit-panel .labkit-wrong input { border-color: var(--jp-error-color1, #b32d00); }
.labkit-panel .labkit-heading .labkit-heading { font-weight: 400; }
</style>"""
)


#: Which of the three tiers the table is of; the editor marks its own numbers *instant*.
LIVE = (
    '<span style="font-size:10px;padding:0 4px;border-radius:3px;border:1px solid rgba(127,127,127,.45);opacity:.8;'
    'cursor:help" title="computed in Python at every move, the newest wins; the pictures follow when the hand rests">'
    "live</span>"
)


def columns(controls: Sequence[W.Widget], picture: Sequence[W.Widget], figures: Sequence[W.Widget]) -> W.HBox:
    """Controls on the left; on the right the picture with what belongs to it, and the figures side by side below.

    Where there is no room for both, the right column goes below the left one, which then is as wide.
    """
    left = W.VBox([W.HTML(_STYLE), *controls], layout={"flex": "1 0 376px", "padding": "0 14px 0 0"})
    halves = [W.VBox([figure], layout={"flex": "1 1 300px", "min_width": "0"}) for figure in figures]
    below = W.HBox(halves, layout={"flex_flow": "row wrap", "width": "100%"})
    right = W.VBox([FitWidth(), *picture, below], layout={"flex": "1000 1 260px", "min_width": "0"})
    return W.HBox([left, right], layout={"flex_flow": "row wrap", "width": "100%"})


def parts_of(widget: W.Widget) -> list[W.Widget]:
    """A widget and everything that belongs to it: children, layouts, styles."""
    found = [widget]
    for name in ("children", "layout", "style"):
        value = getattr(widget, name, None)
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, W.Widget):
                found += parts_of(part)
    return found


def bucket_notes(board: Scoreboard, histogram: LengthHistogram) -> list[str]:
    """Behind each edge: the bucket's share of the sequences and its own padding."""
    return [
        f'<span style="font-size:11px;opacity:.75;white-space:nowrap" title="share of the sequences; padding of this '
        f'bucket">{g.sequences / histogram.sequences:.0%} · {g.padding_ratio:.0%} pad</span>'
        for g in board.groups
    ]
