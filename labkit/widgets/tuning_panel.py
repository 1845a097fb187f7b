"""TuningPanel: move edges and budgets over real lengths and watch what every strategy costs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import ipywidgets as W

from labkit.batching.edges import Edges
from labkit.batching.strategies import Strategy
from labkit.errors import LabkitError
from labkit.experiments.background_traces import BackgroundTraces
from labkit.experiments.lineup import EdgesBy, Lineup
from labkit.experiments.optimum import OptimumCache
from labkit.experiments.scores import Scoreboard, score
from labkit.experiments.tune_buckets import Config, load, save_tuned
from labkit.experiments.what_if_model import ModelChoice
from labkit.lengths.histogram import LengthHistogram
from labkit.views.dataset_summary import Summary
from labkit.views.strategy_table import strategy_table
from labkit.widgets.data_controls import DataControls
from labkit.widgets.edge_editor import EdgeEditor, Setting
from labkit.widgets.edge_sliders import MAX_BUCKETS, EdgeSliders
from labkit.widgets.explained import explained
from labkit.widgets.export_box import ExportBox
from labkit.widgets.gauge_strip import GaugeStrip
from labkit.widgets.live_figures import LiveFigures
from labkit.widgets.live_text import LiveText
from labkit.widgets.measuring import Measuring, Shown
from labkit.widgets.message_order import keep_order
from labkit.widgets.model_controls import ModelControls
from labkit.widgets.newest_wins import NewestWins
from labkit.widgets.panel_layout import LIVE, bucket_notes, columns, parts_of
from labkit.widgets.policy_controls import PolicyControls
from labkit.widgets.section import Section
from labkit.widgets.shelf import Kept, Shelf
from labkit.widgets.sortable_table import SortableTable


@dataclass(frozen=True, slots=True)
class _Request:
    """What the controls said at one moment."""

    seq: int
    editor_seq: int
    histogram: LengthHistogram
    lineup: Lineup
    choice: ModelChoice | None


class TuningPanel(W.VBox):
    """The panel of notebook 01.

    Callbacks only read the controls and enqueue; one worker computes and writes the outputs, the newest request wins.
    Errors are shown in the panel, never raised into a callback.

    Args:
        config: data and settings to start with.
        out: suggested path of the exported JSON.
        replaces: a panel that this one takes the place of; it is closed, so that a cell run again leaves none behind.

    Attributes:
        board: the scores shown at the moment.
    """

    def __init__(
        self, config: Config | None = None, *, out: str | Path = "tuned.json", replaces: TuningPanel | None = None
    ) -> None:
        """Load the data, compute the first answer, lay everything out.

        Raises:
            LabkitError: the data of ``config`` cannot be read.
        """
        self._stops: list[Callable[[], None]] = []  # what has to end with the panel; a constructor that failed has few
        self._worker: NewestWins[_Request] = NewestWins(self._answer, self._draw, self._fail)
        self._stops.append(self._worker.close)
        config = config or Config()
        self._histogram = load(config)
        if replaces is not None:
            replaces.close()
        self._lock = threading.RLock()
        self._seq = 0
        self._data_problem = ""  # why the data set that was asked for is not the one that is shown
        self._data_note = ""  # what else changed with the data, said with the next answer
        self._answered = _Request(0, 0, self._histogram, config.lineup, None)  # what is shown is the answer to it
        self._setting = Setting(0, (), None)  # the newest of the editor that the controls have taken
        self.board = Scoreboard(None, ())
        self._optima = OptimumCache(MAX_BUCKETS)
        self._optimum: Edges | None = None
        self.data = DataControls(config, self._load)
        self.settings = PolicyControls(config.lineup, self._histogram.max, self._enqueue)
        self.edges = EdgeSliders(config.buckets, self._histogram.max, config.edges_by, self._enqueue)
        self.models = ModelControls(config.choice, self._enqueue)
        self._traces = BackgroundTraces(self._enqueue)
        self.measuring = Measuring(self._shown, self._enqueue, self._worker.call)
        self._stops.append(self.measuring.close)
        self.export = ExportBox(config.strategy, out, self._export)
        self.shelf = Shelf(config.strategy, self._now, self._restore, self._worker.call)
        self._loaded = config, self.data.title  # what the histogram is of
        self.summary = W.HTML(Summary(self._histogram, self.data.title)._repr_html_())
        self.message = LiveText()
        self.message.add_class("labkit-message")
        self.table = SortableTable()
        self.editor = EdgeEditor(self._histogram, (max(1, self._histogram.max),), self._edited, most=MAX_BUCKETS)
        self.figures = LiveFigures()
        self.gauges = GaugeStrip()
        self._stops.append(self.gauges.close)
        super().__init__([self.summary, self._columns()])
        keep_order(parts_of(self))
        self.add_class("labkit-panel")
        if config.buckets > MAX_BUCKETS:
            self._say(
                f"{config.buckets} buckets asked: the panel has {MAX_BUCKETS}. `labkit what-if --buckets` takes more."
            )
        self._enqueue()
        self.wait()

    def _columns(self) -> W.HBox:
        controls = [
            self.data,
            Section("Bucket edges", [self.edges]),
            Section("Batches", [self.settings]),
            Section("Model and GPU", [self.models]),
            Section("Measure on this machine", [self.measuring.controls]),
            Section("Keep and compare", [self.shelf]),
            Section("Export", [self.export]),
        ]
        message = W.HBox([W.HTML(LIVE), self.message], layout={"min_height": "0"})
        figures = [self.figures.curve, self.figures.pareto]
        for figure in figures:
            figure.layout.autosize = True
        return columns(controls, [self.editor, message, self.table, self.gauges], figures)

    def wait(self, timeout: float = 30.0) -> bool:
        """Block until everything asked for is computed and drawn; False when the time is up."""
        return self._worker.wait(timeout)

    def close(self) -> None:
        """Stop the worker and remove the panel with everything in it. Safe to call twice."""
        for stop in self._stops:
            stop()
        for part in parts_of(self):
            W.Widget.close(part)

    def _shown(self) -> Shown:
        with self._lock:
            board, answered = self.board, self._answered
        return Shown(board.scores, answered.histogram, None if answered.choice is None else answered.choice.model)

    def _now(self) -> Kept:
        with self._lock:
            board, answered, (config, title) = self.board, self._answered, self._loaded
        by_hand = answered.lineup.bucket_edges is not None
        return Kept(config, title, answered.histogram, answered.lineup, by_hand, answered.choice, board)

    # -- callbacks: read the controls, enqueue --------------------------------------------------------------------

    def _enqueue(self) -> None:
        with self._lock:
            self._seq += 1
            by_hand = self.edges.edges_by is None
            lineup = replace(
                self.settings.lineup,
                buckets=self.edges.buckets.value,
                edges_by=self.edges.edges_by or self.settings.lineup.edges_by,
                bucket_edges=self.edges.edges if by_hand else None,
            )
            choice = self.models.choice
            self._worker.submit(_Request(self._seq, self._setting.seq, self._histogram, lineup, choice))

    def _edited(self) -> None:
        """Edges, and perhaps the cap, moved on the histogram: the twins follow when the hand rests."""
        with self._lock:
            self._setting = self.editor.setting
            if self._setting.cap_moved:
                self.settings.take_cap(self._setting.max_length)
            if self._setting.edges_moved:
                self.edges.take(self._setting.edges)
            self._enqueue()

    def _load(self) -> None:
        config, title = self.data.config, self.data.title
        if config.lengths_file == "":
            self._say(
                "Type the path of a file (lengths.csv, .npy, events.parquet, tuned.json), then open it.", error=True
            )
            return
        self._worker.call(lambda: self._load_now(config, title))

    def _export(self) -> None:
        strategy, path = self.export.strategy, self.export.path
        self._worker.call(lambda: self._export_now(strategy, path))

    def _restore(self, kept: Kept) -> None:
        self._worker.call(lambda: self._restore_now(kept))

    # -- the worker: compute, write the outputs -------------------------------------------------------------------

    def _answer(self, request: _Request) -> None:
        """Edges, scores, table: quick, on the path of a moving slider."""
        try:
            choice = request.choice
            is_traced = choice is not None and self._traces.ready(choice)
            board = score(request.histogram, request.lineup, choice=choice if is_traced else None)
        except Exception:
            self.editor.answer(request.editor_seq, request.lineup)  # it would wait for the answer and hold its moves
            raise
        with self._lock:
            before = self._answered
            is_other = request.histogram is not before.histogram or request.lineup != before.lineup
            self.board, self._answered = board, request
            computed = board.edges if request.lineup.bucket_edges is None else None
            if computed is not None and request.seq == self._seq:  # never move an edge under the user's hand
                self.edges.found(computed.edges)
        used = self._edges_in_use()
        self._optimum = self._optima.quick(request.histogram, request.lineup, used) if used else None
        edges = None if board.edges is None else board.edges.edges
        self.editor.answer(
            request.editor_seq, request.lineup, histogram=request.histogram, edges=edges, optimum=self._optimum
        )
        note = "" if choice is None or is_traced else self._tracing(choice)
        measured = self.measuring.measured(self._shown())
        self.table.value = strategy_table(board.scores, choice, measured, note).html(request.seq)
        if is_other:
            self.export.say("")  # what was saved is not what is shown any more
        said, self._data_note = self._data_note, ""
        if self._data_problem:
            self._say(self._data_problem, error=True)
        else:
            self._say(" ".join(filter(None, (said, board.edges.note if board.edges is not None else None))))

    def _tracing(self, choice: ModelChoice) -> str:
        """What to say of a model that has no figures yet, or never will have."""
        failed = self._traces.failure(choice)
        return ": tracing …" if failed is None else f": {explained(failed)}"

    def _edges_in_use(self) -> int:
        """How many edges the optimum is compared with; 0 where there are none."""
        return len(self.board.groups) or (0 if self.board.edges is None else len(self.board.edges))

    def _draw(self) -> None:
        """Pictures, the twin of the edges, the whole curve of the optimum: when the hand rests."""
        with self._lock:
            answered = self._answered
            if answered.seq == self._seq:
                self.edges.show(self.edges.edges, self._histogram.max)
                self.settings.show_cap()
        used = self._edges_in_use()
        self._optimum = self._optima.best(answered.histogram, answered.lineup, used) if used else None
        self.editor.show_optimum(self._optimum, answered.lineup.max_length)
        self.edges.annotate(bucket_notes(self.board, answered.histogram))
        self.figures.draw(self.board, self._optimum)
        self.shelf.show()

    def _load_now(self, config: Config, title: str) -> None:
        self._say(f"loading {title} …")
        try:
            histogram = load(config)
        except LabkitError as error:
            self._data_problem = f"{error} Still shown: the data named above."
            self._say(self._data_problem, error=True)
            return
        self._data_problem = ""
        self.measuring.controls.forget()
        with self._lock:
            self._histogram, self._loaded = histogram, (config, title)
            if self.edges.edges_by is None:  # edges set by hand belong to the old data
                self.edges.edges_by = config.edges_by or EdgesBy.OPTIMAL
                self._data_note = f"The edges set by hand were for other lengths: these are {self.edges.edges_by}."
            self.settings.fit(histogram)
            self.summary.value = Summary(histogram, title)._repr_html_()
            self._enqueue()

    def _restore_now(self, kept: Kept) -> None:
        """Bring all controls back, and the lengths."""
        lineup, edges = kept.lineup, kept.board.edges
        with self._lock:
            self._data_problem = ""
            self._loaded = kept.data, kept.title
            self.data.take(kept.data)
            if kept.histogram is not self._histogram:
                self._histogram = kept.histogram
                self.summary.value = Summary(kept.histogram, kept.title)._repr_html_()
                self.settings.fit(kept.histogram)
            self.settings.take(lineup)
            self.models.take(kept.choice)
            by_hand = kept.by_hand and edges is not None
            shown = edges.edges if edges is not None else self.edges.edges
            self.edges.restore(lineup.buckets, shown, None if by_hand else lineup.edges_by)
            self._enqueue()

    def _export_now(self, strategy: Strategy, path: str) -> None:
        self.export.say("")
        try:
            saved = save_tuned(self._answered.histogram, self.board[strategy], path)
        except Exception as error:
            self.export.say(explained(error), error=True)
        else:
            self.export.say(f"Saved {saved}: load it with labkit.TunedConfig.load(path)")

    def _fail(self, error: Exception) -> None:
        self._say(explained(error), error=True)

    def _say(self, text: str | None, *, error: bool = False) -> None:
        self.message.say(text, error=error)
