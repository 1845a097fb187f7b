"""KernelControls: which kernel, which lengths, what to do with it, and how far that is."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace

import ipywidgets as W

from labkit.cost.devices import GPUS, gpu
from labkit.experiments.kernel_lab import Config
from labkit.gpu.catalog import KERNELS
from labkit.widgets.data_controls import DataControls
from labkit.widgets.log_int import LABEL

_WIDE = {"width": "auto"}
_DIMS = (8, 16, 32, 64, 128, 256, 512)


class KernelControls(W.VBox):
    """The left column of the panel; states are read from ``config``.

    Args:
        config: what to start with.
        picked: called when another op is picked.
        changed: called when lengths, D or the GPU change.

    Attributes:
        check, count, time, reset, cancel: buttons; the panel wires them.
    """

    def __init__(self, config: Config, picked: Callable[[], None], changed: Callable[[], None]) -> None:
        """Lay out menus and buttons."""
        self._start = config
        self.op = W.Dropdown(options=list(KERNELS), value=config.op, description="kernel", style=LABEL, layout=_WIDE)
        self.data = DataControls(config.lengths, changed)
        dims = sorted({*_DIMS, config.dim})
        self.dim = W.Dropdown(options=dims, value=config.dim, description="features D", style=LABEL, layout=_WIDE)
        self.gpu = W.Dropdown(
            options=list(GPUS), value=gpu(config.gpu).name, description="floor on", style=LABEL, layout=_WIDE
        )
        half = {"flex": "1 1 80px", "width": "auto"}
        self.check = W.Button(
            description="Check", icon="check", button_style="primary", layout=half,
            tooltip="results in three orders of the threads, races, bounds, sanitizers, PTX, registers; Ctrl+Enter",
        )  # fmt: skip
        self.count = W.Button(
            description="Counts", icon="bar-chart", layout=half, tooltip="memory requests of each line, on your lengths"
        )
        self.time = W.Button(
            description="Time", icon="clock-o", layout=half, tooltip="the shipped kernel on the GPU at hand"
        )
        self.reset = W.Button(
            description="Reset", icon="undo", layout=half, tooltip="back to the source as it is shipped"
        )
        self.cancel = W.Button(description="Cancel", icon="stop", layout=half, disabled=True)
        self._bar = W.IntProgress(0, min=0, max=1, layout={"width": "auto"})
        self._stage = W.HTML()
        self._stage.add_class("labkit-stage")
        buttons = W.HBox([self.check, self.count, self.time, self.reset, self.cancel], layout={"flex_flow": "row wrap"})
        super().__init__([self.op, self.data, self.dim, self.gpu, buttons, self._bar, self._stage])
        self.op.observe(lambda _: picked(), "value")
        for control in (self.dim, self.gpu):
            control.observe(lambda _: changed(), "value")
        self.idle()

    @property
    def config(self) -> Config:
        """What the controls say."""
        data = self.data.config
        names = ("preset", "lengths_file", "user_column", "alpha", "sequences", "longest")
        lengths = {name: getattr(data, name) for name in names}
        return replace(self._start, op=self.op.value, dim=self.dim.value, gpu=self.gpu.value, **lengths)

    def working(self, stage: str, done: int = 0, of: int = 1) -> None:
        """Show how far it is; the buttons that start something wait."""
        for button in (self.check, self.count, self.time):
            button.disabled = True
        self.cancel.disabled = False
        self._bar.layout.visibility = "visible"
        self._bar.max, self._bar.value = max(1, of), done
        self._stage.value = html.escape(stage)

    def idle(self, said: str = "") -> None:
        """Nothing runs."""
        for button in (self.check, self.count, self.time):
            button.disabled = False
        self.cancel.disabled = True
        self._bar.layout.visibility = "hidden"
        self._stage.value = html.escape(said)
