"""DataControls: which lengths the panel works on: a preset, a file, or a generated power law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ipywidgets as W

from labkit.experiments.tune_buckets import GENERATED, Config
from labkit.lengths.presets import PRESETS
from labkit.widgets.log_int import LABEL, LogInt

_FILE = "file"


class DataControls(W.VBox):
    """A menu of data sets and the fields that the chosen kind needs.

    Args:
        config: what to start with.
        changed: called (without arguments) when other lengths are wanted; read ``config`` then.
    """

    def __init__(self, config: Config, changed: Callable[[], None]) -> None:
        """Lay out the menu and the two groups of fields."""
        self._start, self._changed = config, changed
        options = [(f"{p.key}: {p.title}", p.key) for p in PRESETS]
        options += [("generated: power law", GENERATED), ("a file of yours", _FILE)]
        known = {value for _, value in options}
        source = _FILE if config.lengths_file is not None else config.preset
        if source not in known:  # an alias of a preset
            options.insert(0, (source, source))
        self.source = W.Dropdown(
            options=options, value=source, description="data", style=LABEL, layout={"width": "auto"}
        )
        self.path = W.Text(
            config.lengths_file or "", description="path", placeholder="lengths.csv, .npy, events.parquet, tuned.json",
            layout={"width": "auto"}, style=LABEL,
        )  # fmt: skip
        self.user = W.Text(
            config.user_column or "", description="user column", placeholder="for event tables, e.g. user_id",
            layout={"width": "auto"}, style=LABEL,
        )  # fmt: skip
        self.open_button = W.Button(description="Open file", icon="folder-open", layout={"width": "auto"})
        self._file = W.VBox([self.path, self.user, self.open_button])
        self.alpha = W.FloatSlider(
            config.alpha, min=1.05, max=4, step=0.05, description="α", continuous_update=False,
            style=LABEL, layout={"width": "auto"},
        )  # fmt: skip
        self.sequences = LogInt("sequences", config.sequences, 100, max(20_000_000, config.sequences))
        self.longest = LogInt("longest", config.longest, 2, max(65_536, config.longest))
        for control in (self.sequences, self.longest):
            control.slider.continuous_update = False
        self._generated = W.VBox([self.alpha, self.sequences, self.longest])
        super().__init__([self.source, self._file, self._generated])
        self._show_fields()
        self._taking = False
        self.source.observe(self._on_source, "value")
        self.open_button.on_click(lambda _: self._changed())
        for control in (self.alpha, self.sequences, self.longest):
            control.observe(lambda _: None if self._taking else self._changed(), "value")

    @property
    def config(self) -> Config:
        """The starting config with the data fields as they are now."""
        is_file = self.source.value == _FILE
        return replace(
            self._start,
            preset=self._start.preset if is_file else self.source.value,
            lengths_file=self.path.value.strip() if is_file else None,
            user_column=self.user.value.strip() or None,
            alpha=self.alpha.value,
            sequences=self.sequences.value,
            longest=self.longest.value,
        )

    def take(self, config: Config) -> None:
        """Show which data a config names; no callback follows."""
        self._taking = True
        try:
            self.source.value = _FILE if config.lengths_file is not None else config.preset
            self.path.value, self.user.value = config.lengths_file or "", config.user_column or ""
            self.alpha.value, self.sequences.value, self.longest.value = config.alpha, config.sequences, config.longest
        finally:
            self._taking = False

    @property
    def title(self) -> str:
        """What to call the data set."""
        return self.path.value.strip() if self.source.value == _FILE else str(self.source.value)

    def _on_source(self, change: Any) -> None:
        self._show_fields()
        if change["new"] != _FILE and not self._taking:  # a file is opened by its button, once the path is there
            self._changed()

    def _show_fields(self) -> None:
        self._file.layout.display = "" if self.source.value == _FILE else "none"
        self._generated.layout.display = "" if self.source.value == GENERATED else "none"
