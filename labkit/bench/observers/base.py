"""Observer: what is called around a timed loop, and the figures that it leaves behind."""

from __future__ import annotations

from labkit.provenance import Figure


class Observer:
    """Looks at a run without touching its loop; every method may be left as it is.

        before_run  (before_wait  before_step  after_step) * n  after_run  ->  figures

    ``before_run`` comes after warm-up and synchronization, ``after_run`` after the last synchronization. None of the
    calls may synchronize with the device: what is asynchronous is read in ``figures``.

    Source: the observers of Kernel Tuner (``kernel_tuner/observers``), which add power and clocks to a benchmark loop.
    """

    def before_run(self) -> None:
        """The clock is about to start."""

    def before_wait(self) -> None:
        """The next batch is about to be asked for; also called when there is none left."""

    def before_step(self) -> None:
        """A batch is there, its step is about to start."""

    def after_step(self) -> None:
        """The step has returned; on a GPU its work may still be running."""

    def after_run(self) -> None:
        """The clock has stopped."""

    def figures(self) -> dict[str, Figure]:
        """What was found, by field name; what could not be found is a figure without a value, with the reason."""
        return {}
