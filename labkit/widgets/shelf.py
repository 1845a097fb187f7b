"""Shelf: two settings that are kept with their figures, compared with each other or with what is shown now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as W

from labkit.batching.strategies import Strategy
from labkit.experiments.lineup import Lineup
from labkit.experiments.scores import Scoreboard
from labkit.experiments.tune_buckets import Config
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.views.comparison_table import Side, comparison_table
from labkit.widgets.log_int import LABEL


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

    @property
    def words(self) -> str:
        """The settings in a few words."""
        edges = self.board.edges
        many = "no edges" if edges is None else f"{len(edges)} edges {edges.edges[0]}…{edges.edges[-1]}"
        cap = "" if self.lineup.max_length is None else f", cap {self.lineup.max_length}"
        model = "" if self.choice is None else f", {self.choice.title}"
        return f"{self.title}, {many}, budget {self.lineup.token_budget}, rows {self.lineup.rows}{cap}{model}"


class Shelf(W.VBox):
    """*Keep A*, *Keep B*, *Restore* each, and the table A | B | difference; B is what is shown now until it is kept.

    Args:
        strategy: compared at first.
        now: says what is shown.
        restore: called with what is to be brought back.

    Attributes:
        kept: by letter.
    """

    def __init__(self, strategy: Strategy, now: Callable[[], Kept], restore: Callable[[Kept], None]) -> None:
        """Nothing is kept."""
        self.kept: dict[str, Kept] = {}
        self._now, self._restore = now, restore
        self.strategy = W.Dropdown(
            options=[(str(s), s) for s in Strategy], value=strategy, description="strategy", style=LABEL,
            layout={"width": "auto"},
        )  # fmt: skip
        self.table = W.HTML()
        self.keep = {name: self._button(f"Keep {name}", "remember what is shown, with its figures") for name in "AB"}
        self.restore = {name: self._button(f"Restore {name}", "bring all controls back to it") for name in "AB"}
        buttons = [x for name in "AB" for x in (self.keep[name], self.restore[name])]
        super().__init__([self.strategy, W.HBox(buttons), self.table])
        for name in "AB":
            self.restore[name].disabled = True
            self.keep[name].on_click(lambda _, name=name: self._keep(name))
            self.restore[name].on_click(lambda _, name=name: self._restore(self.kept[name]))
        self.strategy.observe(lambda _: self.show(), "value")

    def show(self) -> None:
        """Bring the table up to date."""
        self.table.value = comparison_table(self._side("A"), self._side("B")) if self.kept else ""

    def _keep(self, name: str) -> None:
        self.kept[name] = self._now()
        self.restore[name].disabled = False
        self.show()

    def _side(self, name: str) -> Side:
        kept = self.kept.get(name)
        letter, shown = (name, kept) if kept is not None else ("now", self._now())
        return Side(letter, shown.words, shown.board[Strategy(self.strategy.value)])

    def _button(self, text: str, tip: str) -> W.Button:
        return W.Button(description=text, tooltip=tip, layout={"flex": "1 1 0", "width": "auto", "min_width": "0"})
