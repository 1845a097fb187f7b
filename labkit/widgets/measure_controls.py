"""MeasureControls: what to measure, where and for how long; the buttons, the progress and one line of answer."""

from __future__ import annotations

import time
from collections.abc import Callable

import ipywidgets as W

from labkit.batching.strategies import Strategy
from labkit.errors import DeviceError
from labkit.experiments.measure_job import Progress
from labkit.gpu.nvml import NvmlSession
from labkit.units import counted
from labkit.widgets.live_text import LiveText
from labkit.widgets.log_int import LABEL

#: Seconds between two updates of the bar.
_LEAST_S = 0.3
_SMALL = "font-size:12px;line-height:1.35;font-variant-numeric:tabular-nums;color:var(--jp-ui-font-color2, #666)"


class MeasureControls(W.VBox):
    """Menus of strategies and devices, seconds a strategy, *Measure*, *Cancel*, a bar.

    Args:
        measure, cancel: called (without arguments) by the buttons.
    """

    def __init__(self, measure: Callable[[], None], cancel: Callable[[], None]) -> None:
        """Lay out the rows; GPUs are looked up through NVML, which loads no torch."""
        wide = {"width": "auto"}
        options = [("all that fit", ""), *((str(s), s) for s in Strategy)]
        self.strategy = W.Dropdown(options=options, description="what", style=LABEL, layout=wide)
        self.device = W.Dropdown(options=_devices(), description="device", style=LABEL, layout=wide)
        self.seconds = W.BoundedFloatText(
            3.0,
            min=0.1,
            max=3600,
            step=0.5,
            description="seconds each",
            style=LABEL,
            layout={"width": "168px", "flex": "0 0 auto"},
        )
        button = {"flex": "1 1 0", "width": "auto", "min_width": "0"}
        self.button = W.Button(
            description="Measure",
            tooltip="run the strategies that are shown on this machine, in a process of its own",
            layout=button,
        )
        self.cancel = W.Button(
            description="Cancel", tooltip="end the measurement; what is measured stays", disabled=True, layout=button
        )
        self.bar = W.FloatProgress(0.0, min=0.0, max=1.0, layout={"width": "auto", "height": "10px", "display": "none"})
        self.answer = LiveText(layout={"padding": "0 2px"})
        self.answer.add_class("labkit-measured")
        self.progress = W.HTML()  # changes several times a second: to be seen, not to be read out
        row = W.HBox([self.seconds, self.button, self.cancel])
        super().__init__([self.strategy, self.device, row, self.bar, self.answer, self.progress])
        self.button.on_click(lambda _: measure())
        self.cancel.on_click(lambda _: cancel())
        for menu in (self.device, self.strategy):
            menu.observe(lambda _: self.forget(), "value")
        self._shown_at = 0.0
        self._shown_index = -1

    def began(self, text: str) -> None:
        """A measurement runs: it can be cancelled, and no other be started."""
        self.button.disabled, self.cancel.disabled = True, False
        self.bar.value, self.bar.layout.display = 0.0, ""
        self._shown_index = -1
        self.say(text)

    def show(self, progress: Progress) -> None:
        """Bring bar and text up to date, a few times a second at most."""
        now, is_next = time.monotonic(), progress.index != self._shown_index
        if not is_next and now - self._shown_at < _LEAST_S:
            return
        self._shown_at, self._shown_index = now, progress.index
        part = min(1.0, progress.seconds / progress.total_s) if progress.total_s else 0.0
        self.bar.value = (progress.index + part) / progress.of
        if is_next:
            self.say(f"{progress.strategy} ({progress.index + 1} of {progress.of})")
        done = f"{counted(progress.steps, 'step')}, {progress.seconds:.1f} s" if progress.steps else "warming up"
        self.progress.value = f'<div aria-hidden="true" class="labkit-progress" style="{_SMALL}">{done}</div>'

    def ended(self, text: str, *, error: bool = False) -> None:
        """Nothing runs any more."""
        self.button.disabled, self.cancel.disabled = False, True
        self.bar.layout.display, self.progress.value = "none", ""
        self.say(text, error=error)

    def forget(self) -> None:
        """Take the last answer away, where nothing runs: it was about other settings."""
        if self.cancel.disabled:
            self.say("")

    def say(self, text: str, *, error: bool = False) -> None:
        """Show one line."""
        self.answer.say(text, error=error)


def _devices() -> list[tuple[str, str]]:
    """The processor, and the GPUs that this process sees; where there is none, *cuda* answers what was probed."""
    try:
        with NvmlSession() as session:
            found = [(f"cuda:{d.index}: {d.name}", f"cuda:{d.index}") for d in session.devices]
    except DeviceError:
        found = []
    return [("cpu", "cpu"), *(found or [("cuda (none found)", "cuda")])]
