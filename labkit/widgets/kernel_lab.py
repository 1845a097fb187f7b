"""KernelLab: change a kernel, and see without a GPU whether it is right, races, and how it asks for memory."""

from __future__ import annotations

import html
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as W

from labkit.cost.devices import gpu
from labkit.errors import LabkitError
from labkit.experiments.kernel_child import KernelRun
from labkit.experiments.kernel_job import KernelAnswer, KernelJob
from labkit.experiments.kernel_lab import Config, Result, kernel_job, launch_config
from labkit.experiments.kernel_sources import shipped_sources
from labkit.experiments.kernel_time import time_kernel
from labkit.experiments.kernel_workload import Workload, sampled_rows
from labkit.experiments.regime_shares import regime_shares
from labkit.lengths.histogram import LengthHistogram
from labkit.views.kernel_proof import PROOF_STYLE, verdict
from labkit.widgets.kernel_controls import KernelControls
from labkit.widgets.kernel_results import KernelResults
from labkit.widgets.live_text import LiveText
from labkit.widgets.message_order import keep_order
from labkit.widgets.newest_wins import NewestWins
from labkit.widgets.panel_layout import parts_of
from labkit.widgets.source_editor import SourceEditor

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    """A job with the number of the pick it belongs to."""

    pick: int
    job: KernelJob


class KernelLab(W.VBox):
    """The panel of notebook 04.

    Callbacks read the controls and enqueue. Lengths and time are one worker's, checks another's, in a child process;
    errors are shown, never raised into a callback.

    Args:
        config: kernel and lengths to start with.
        result: what is known of them already; shown at once.
        replaces: a panel that this one takes the place of; it is closed.

    Attributes:
        answer: proof and counts that are shown; None: none yet.
        message: the verdict.
        said: what went wrong otherwise, in words.
    """

    def __init__(
        self, config: Config | None = None, *, result: Result | None = None, replaces: KernelLab | None = None
    ) -> None:
        """Load the lengths, lay everything out.

        Raises:
            LabkitError: the lengths or the source of ``config`` cannot be read.
        """
        self._stops: list[Callable[[], None]] = []  # what has to end with the panel; a constructor that failed has few
        config = config or (Config() if result is None else result.config)
        histogram = config.histogram() if result is None else result.histogram
        if replaces is not None:
            replaces.close()
        self._lock = threading.RLock()
        self._pick = 0  # number of the kernel that was picked: answers for another one are dropped
        self._op = config.op
        self._texts: dict[str, dict[str, str]] = {}  # of ops that were changed and left
        self._run: KernelRun | None = None
        self._asked: object | None = None  # a button was pressed, and what is to be run is not known yet
        self._histogram: LengthHistogram = histogram
        self._loaded = config
        self.answer: KernelAnswer | None = None
        self._quick: NewestWins[Config] = NewestWins(self._load, lambda: None, self._fail)
        self._checks: NewestWins[_Task] = NewestWins(self._work, lambda: None, self._fail)
        self._stops += [self._end_run, self._quick.close, self._checks.close]
        self.controls = KernelControls(config, self._on_picked, self._on_changed)
        self.said = LiveText()
        self.message = W.HTML()
        self.message.add_class("labkit-message")
        self.editor = SourceEditor(shipped_sources(config.op), self.check)
        self.results = KernelResults()
        left = W.VBox([self.controls], layout={"flex": "0 0 300px", "padding": "0 14px 0 0"})
        right = W.VBox(
            [self.said, self.message, self.editor],
            layout={"flex": "1 1 560px", "min_width": "0", "overflow": "visible"},
        )
        super().__init__([W.HBox([left, right], layout={"flex_flow": "row wrap", "width": "100%"}), self.results])
        self.add_class("labkit-panel")
        self.add_class("labkit-kernel-lab")
        if config.source_file is not None:
            self.editor.texts = config.source_texts()
        self._wire()
        self._show_lengths(config, histogram)
        keep_order(parts_of(self))
        if result is not None:
            self.results.show_time(result.time)
        if result is not None and result.answer is not None:
            self._show(result.answer)
        elif result is not None and result.problem:
            self._say(result.problem, error=True)

    def _wire(self) -> None:
        self.controls.check.on_click(lambda _: self.check())
        self.controls.count.on_click(lambda _: self.count())
        self.controls.time.on_click(lambda _: self._quick.call(self._time))
        self.controls.reset.on_click(lambda _: self._on_reset())
        self.controls.cancel.on_click(lambda _: self.cancel())
        self.editor.observe(lambda _: self._on_edited(), "texts")

    # -- what can be asked for ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Prove the text in the editor, and count its requests."""
        self._ask(proof=True)

    def count(self) -> None:
        """Count the requests of the text in the editor."""
        self._ask(proof=False)

    def cancel(self) -> None:
        """End what runs; what is shown stays. A child may take seconds to end: nobody waits for it here."""
        with self._lock:
            run, asked, self._asked = self._run, self._asked, None
            if asked is not None:
                self.controls.idle("cancelled")
        if run is not None:
            threading.Thread(target=run.cancel, name="labkit-cancel", daemon=True).start()

    def wait(self, timeout: float = 120.0) -> bool:
        """Block until everything asked for is done; False when the time is up."""
        return self._quick.wait(timeout) and self._checks.wait(timeout)

    def close(self) -> None:
        """End what runs and remove the panel. Safe to call twice."""
        for stop in self._stops:
            stop()
        for part in parts_of(self):
            W.Widget.close(part)

    def _end_run(self) -> None:
        with self._lock:
            run = self._run
        if run is not None:
            run.cancel()

    # -- callbacks: read the controls, enqueue --------------------------------------------------------------------

    def _ask(self, *, proof: bool) -> None:
        with self._lock:
            if self._run is not None or self._asked is not None:
                self.said.say(
                    "A check runs: cancel it, or wait for its end."
                )  # the buttons are off, the keyboard is not
                return
            try:
                config, texts = self.controls.config, dict(self.editor.texts)
            except LabkitError as error:
                self._fail(error)
                return
            self._asked = asked = object()
            self.controls.working("starting", 0, 1)
        # after the lengths that were asked for before
        self._quick.call(lambda: self._begin(asked, config, texts, proof=proof))

    def _begin(self, asked: object, config: Config, texts: dict[str, str], *, proof: bool) -> None:
        with self._lock:
            if asked is not self._asked:
                return  # cancelled, and perhaps asked for anew since
            self._asked = None
            if config.lengths != self._loaded.lengths:
                self.controls.idle("not started: the lengths cannot be read")  # why is said already
                return
            try:
                job = kernel_job(config, self._histogram, texts, proof=proof)
            except Exception:
                self.controls.idle("")
                raise
            self._run = KernelRun(job)
            self.controls.working("starting", 0, job.stages)
            self._checks.submit(_Task(self._pick, job))

    def _on_picked(self) -> None:
        with self._lock:
            self.cancel()
            self._pick += 1
            if dict(self.editor.texts) != dict(self.editor.shipped):
                self._texts[self._op] = dict(self.editor.texts)
            else:
                self._texts.pop(self._op, None)
            self._op = self.controls.op.value
            self.answer = None
            self.editor.show_sources(shipped_sources(self._op), self._texts.get(self._op))
            self.results.forget()
            self._say("")
            self._quick.submit(self.controls.config)

    def _on_reset(self) -> None:
        self.editor.reset()
        with self._lock:
            if self._run is None and self._asked is None:
                self.controls.idle("")  # what was said was about the text before

    def _on_changed(self) -> None:
        try:
            self._quick.submit(self.controls.config)
        except LabkitError as error:
            self._fail(error)

    def _on_edited(self) -> None:
        if self.answer is not None:
            self.message.remove_class("labkit-old")
            if dict(self.answer.job.sources) != dict(self.editor.texts):
                self.message.add_class("labkit-old")

    # -- workers ----------------------------------------------------------------------------------------------------

    def _load(self, config: Config) -> None:
        histogram = self._histogram if config.lengths == self._loaded.lengths else config.histogram()
        self._show_lengths(config, histogram)

    def _show_lengths(self, config: Config, histogram: LengthHistogram) -> None:
        self._histogram, self._loaded = histogram, config
        launch = launch_config(histogram, config.dim, config.counted_rows)
        self.results.show_regimes(histogram, regime_shares(histogram, launch.thresholds))
        self._time(measure=False)

    def _time(self, *, measure: bool = True) -> None:
        config, histogram = self._loaded, self._histogram
        rows = sampled_rows(histogram.values, histogram.counts, config.timed_rows)
        launch = launch_config(histogram, config.dim, config.timed_rows)
        workload = Workload(config.op, rows, config.dim, launch)
        self.results.show_time(time_kernel(workload, gpu(config.gpu), measure=measure))

    def _work(self, task: _Task) -> None:
        run = self._run
        if run is None:
            return
        try:
            answer = run.run(self.controls.working)
        finally:
            with self._lock:
                self._run = None
                self.controls.idle("cancelled" if run.cancelled else "")
        with self._lock:
            if answer is not None and task.pick == self._pick:
                self._show(answer)

    def _show(self, answer: KernelAnswer) -> None:
        self.answer = answer
        sources = answer.job.sources
        self.editor.show_findings(answer.reports, sources)
        if answer.proof is not None:
            self.said.say("")
            left = "".join(f"<div>not looked at: {html.escape(text)}</div>" for text in answer.proof.not_proved)
            self.message.value = f'{PROOF_STYLE}<div class="labkit-proof">{verdict(answer.proof)}{left}</div>'
            self.results.show_proof(answer.proof)
        elif answer.reports:
            self._say(f"{len(answer.reports)} reports while it was counted: Check says more", error=True)
        else:
            self.said.say("")
        if answer.counts is not None:
            self.editor.show_counts(answer.counts.whole.counts, sources)
            self.results.show_counts(answer.counts)
        self._on_edited()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, LabkitError):
            _log.error("the panel's worker failed", exc_info=error)
            self._say(f"unexpected {type(error).__name__}: {error}", error=True)
        else:
            self._say(str(error), error=True)

    def _say(self, text: str, *, error: bool = False) -> None:
        self.message.value = ""
        self.said.say(text, error=error)
