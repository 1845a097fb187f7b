"""Measuring: from the panel's controls to the records that its table shows, fresh or of earlier settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Strategy
from labkit.bench.record import Record
from labkit.errors import LabkitError, PolicyError
from labkit.experiments.execution import Execution
from labkit.experiments.measure_job import Job, Progress
from labkit.experiments.measure_thread import MeasureThread
from labkit.experiments.scores import Score
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model, check_layout
from labkit.views.measured_columns import Measured
from labkit.widgets.explained import explained
from labkit.widgets.measure_controls import MeasureControls


@dataclass(frozen=True, slots=True)
class Shown:
    """What a panel shows at one moment.

    Attributes:
        scores: of all strategies.
        histogram: they were scored on it.
        model: that was chosen; None: none.
    """

    scores: Sequence[Score]
    histogram: LengthHistogram
    model: Model | None


class Measuring:
    """Measures what is shown, and keeps the newest record of every strategy.

    Args:
        shown: says what is shown.
        changed: called (without arguments, on the measuring thread) when there is a new record.
        later: runs what it is given once everything that was asked for before is shown.

    Attributes:
        controls: the widget.
    """

    #: What is run where no model is chosen.
    DEFAULT_MODEL = Model.DIN

    def __init__(
        self,
        shown: Callable[[], Shown],
        changed: Callable[[], None],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        """Nothing is measured before the button is pressed."""
        self._shown, self._changed, self._later = shown, changed, later
        self._asking = threading.Lock()
        self._ask: object | None = None  # the button was pressed, and what is to be measured is not known yet
        self._thread = MeasureThread(self._tell, self._ended)
        self._job: Job | None = None
        self._new: list[Record] = []  # of the newest job
        self._records: dict[Strategy, tuple[Record, Job]] = {}
        self.controls = MeasureControls(self.start, self.cancel)

    def start(self) -> None:
        """Measure what was asked for before; what cannot be is said at the button."""
        with self._asking:
            if self._ask is not None or self._thread.running:
                return
            self._ask = ask = object()
        self.controls.began("starting")
        self._later(lambda: self._start(ask))

    def cancel(self) -> None:
        """Have the measurement ended; what was measured before is kept. Does not wait."""
        with self._asking:
            ask, self._ask = self._ask, None
        if ask is not None:
            self.controls.ended("cancelled: nothing was measured")
        else:
            self._thread.cancel()

    def _start(self, ask: object) -> None:
        with self._asking:
            if ask is not self._ask:
                return  # cancelled, and perhaps asked for anew since
            try:
                job = self._wanted(self._shown())
                self._job, self._new = job, []
                self.controls.say(f"starting: {job.model} on {job.device}")
                self._thread.start(job)
            except LabkitError as error:
                self.controls.ended(explained(error), error=True)
            except Exception:
                self.controls.ended("not started", error=True)
                raise
            finally:
                self._ask = None

    def measured(self, now: Shown) -> Measured:
        """The records beside what is shown now; one of other lengths, another policy or another model is stale."""
        records = dict(self._records)  # the measuring thread may add one
        if not records:
            return Measured()
        _, newest = next(reversed(records.values()))
        alike = {k: x for k, x in records.items() if (x[1].model, x[1].device) == (newest.model, newest.device)}
        policies = {s.strategy: s.policy for s in now.scores if s.what_if is not None}
        stale = frozenset(
            key
            for key, (record, job) in alike.items()
            if job.histogram != now.histogram
            or now.model not in (None, job.model)
            or (policy := policies.get(key)) is None
            or policy.to_dict() != dict(record.policy)
        )
        title = f"{newest.model} on {newest.device}"
        return Measured(title, {k: record for k, (record, _) in alike.items()}, stale, on_cpu=newest.device == "cpu")

    def wait(self, timeout: float = 60.0) -> bool:
        """Block until no measurement runs; False when the time is up."""
        return self._thread.wait(timeout)

    def close(self) -> None:
        """End the child process, if one runs. Safe to call twice."""
        self._thread.close()

    # -- what is asked for --------------------------------------------------------------------------------------------

    def _wanted(self, shown: Shown) -> Job:
        model = shown.model or self.DEFAULT_MODEL
        asked = self.controls.strategy.value
        policies = [self._policy(shown, model, Strategy(asked))] if asked else self._policies(shown, model)
        execution = Execution(seconds=self.controls.seconds.value)
        return Job(shown.histogram, tuple(policies), model, str(self.controls.device.value), execution)

    def _policies(self, shown: Shown, model: Model) -> list[BatchPolicy]:
        found = [s.policy for s in shown.scores if s.what_if is not None and s.policy is not None]
        taken = [policy for policy in found if _takes(model, policy.strategy)]
        if not taken:
            raise PolicyError("no strategy of the table fits these lengths with these settings: the table says why.")
        return taken

    def _policy(self, shown: Shown, model: Model, strategy: Strategy) -> BatchPolicy:
        check_layout(model, strategy)
        score = next(s for s in shown.scores if s.strategy is strategy)
        if score.policy is None or score.what_if is None:
            raise PolicyError(f"{strategy} cannot be measured: {score.error}")
        return score.policy

    # -- what comes back, on the measuring thread ---------------------------------------------------------------------

    def _tell(self, event: Progress | Record) -> None:
        if isinstance(event, Progress):
            self.controls.show(event)
            return
        if self._job is None:
            raise AssertionError("a record came and no job was started")
        self._new.append(event)
        strategy = Strategy(event.strategy)
        self._records.pop(strategy, None)  # the newest comes last
        self._records[strategy] = (event, self._job)
        self._changed()

    def _ended(self, error: Exception | None, cancelled: bool) -> None:
        job = self._job
        if job is None:
            raise AssertionError("a job ended and none was started")
        failed = [f"{r.strategy}: {r.reason['epoch_s']}" for r in self._new if not r.ok]
        done = len(self._new) - len(failed)
        if error is not None:
            self.controls.ended(explained(error), error=True)
        else:
            text = f"{done} of {len(job.policies)} strategies measured. {job.data_note}"
            notes = f". Not measured: {'; '.join(failed)}" if failed else ""
            text = f"cancelled: {text}" if cancelled else text
            self.controls.ended(text + notes, error=bool(failed) and not done)


def _takes(model: Model, strategy: Strategy) -> bool:
    try:
        check_layout(model, strategy)
    except PolicyError:
        return False
    return True
