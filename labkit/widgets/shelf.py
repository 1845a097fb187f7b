"""Shelf: two settings that are kept with their figures, compared with each other or with what is shown now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as W

from labkit.batching.strategies import STRATEGIES, Strategy
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import Scoreboard
from labkit.experiments.tune_buckets import Config
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.views.comparison_table import Side, comparison_table

#: Fields of a policy that are said of it, and how they are called.
_SAID = (("token_budget", "budget"), ("capacity", "capacity"), ("rows", "rows"), ("max_length", "cap"))
_OTHER_DATA = (
    '<div role="note" style="font-size:12px;line-height:1.35">{a} and {b} are of different lengths: padding can be '
    "compared, counts and times cannot.</div>"
)


@dataclass(frozen=True)
class Kept:
    """Settings, and what they cost.

    Attributes:
        data: which lengths, as the controls of the data say it.
        title: of the data.
        histogram: the lengths.
        lineup: the settings.
        by_hand: its edges were set by hand.
        choice: model and GPU.
        board: the scores.
    """

    data: Config
    title: str
    histogram: LengthHistogram
    lineup: Lineup
    by_hand: bool
    choice: ModelChoice | None
    board: Scoreboard

    def words(self, strategy: Strategy) -> str:
        """The settings that decide on a strategy, in a few words."""
        edges, policy, fields = self.board.edges, self.board[strategy].policy, STRATEGIES[strategy].fields
        parts = [self.title, str(strategy)]
        if "bucket_edges" in fields:
            parts.append("no edges" if edges is None else f"{len(edges)} edges {edges.edges[0]}…{edges.edges[-1]}")
        values = [(word, getattr(policy, name)) for name, word in _SAID if policy is not None and name in fields]
        parts += [f"{word} {value}" for word, value in values if value is not None]
        if self.choice is not None:
            parts.append(self.choice.title)
        return ", ".join(parts)


class Shelf(W.VBox):
    """*Keep A*, *Keep B*, *Restore* each, a strategy each, and the table A | B | difference.

    B is what is shown now until it is kept.

    Args:
        strategy: compared at first.
        now: says what is shown.
        restore: called with what is to be brought back.
        later: runs what it is given once everything that was asked for before is shown.

    Attributes:
        kept: by letter.
        strategies: menus by letter: which strategy of these settings is compared.
    """

    def __init__(
        self,
        strategy: Strategy,
        now: Callable[[], Kept],
        restore: Callable[[Kept], None],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        """Nothing is kept."""
        self.kept: dict[str, Kept] = {}
        self._now, self._restore = now, restore
        self.strategies = {name: _menu(name, strategy) for name in "AB"}
        self.table = W.HTML()
        self.note = W.HTML()
        self.keep = {name: self._button(f"Keep {name}", "remember what is shown, with its figures") for name in "AB"}
        self.restore = {name: self._button(f"Restore {name}", "bring all controls back to it") for name in "AB"}
        rows = [W.HBox([self.keep[name], self.restore[name], self.strategies[name]]) for name in "AB"]
        super().__init__([*rows, self.note, self.table])
        for name in "AB":
            self.restore[name].disabled = True
            self.keep[name].on_click(lambda _, name=name: later(lambda: self._keep(name)))
            self.restore[name].on_click(lambda _, name=name: later(lambda: self._restore(self.kept[name])))
            self.strategies[name].observe(lambda _: later(self.show), "value")

    def show(self) -> None:
        """Bring the table up to date."""
        if not self.kept:
            self.table.value = self.note.value = ""
            return
        a, b = self._side("A"), self._side("B")
        self.table.value = comparison_table(a[0], b[0])
        same = a[1].histogram == b[1].histogram
        self.note.value = "" if same else _OTHER_DATA.format(a=a[0].name, b=b[0].name)

    def _keep(self, name: str) -> None:
        self.kept[name] = self._now()
        self.restore[name].disabled = False
        self.show()

    def _side(self, name: str) -> tuple[Side, Kept]:
        kept, strategy = self.kept.get(name), Strategy(self.strategies[name].value)
        letter, shown = (name, kept) if kept is not None else ("now", self._now())
        return Side(letter, shown.words(strategy), shown.board[strategy]), shown

    def _button(self, text: str, tip: str) -> W.Button:
        return W.Button(description=text, tooltip=tip, layout={"flex": "0 0 88px", "width": "88px", "padding": "0 4px"})


def _menu(name: str, strategy: Strategy) -> W.Dropdown:
    return W.Dropdown(
        options=[(str(s), s) for s in Strategy], value=strategy, description=f"strategy of {name}",
        style={"description_width": "0px"}, layout={"flex": "1 1 0", "width": "auto", "min_width": "0"},
    )  # fmt: skip
