"""ModelControls: the model whose figures are added to the table, and the GPU that they are for."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as W

from labkit.cost.devices import GPUS, gpu
from labkit.experiments.what_if_model import ModelChoice
from labkit.models.registry import MODELS, Model
from labkit.widgets.log_int import LABEL

_NONE = "none"


class ModelControls(W.VBox):
    """A menu of models and a menu of GPUs, each with none.

    Args:
        choice: what to start with.
        changed: called (without arguments) after each change by the user.
    """

    def __init__(self, choice: ModelChoice | None, changed: Callable[[], None]) -> None:
        """Lay out both menus."""
        models = [("none: lengths alone", None), *((spec.title, model) for model, spec in MODELS.items())]
        gpus = [(_NONE, None), *((name, name) for name in GPUS)]
        wide = {"width": "auto"}
        self.model = W.Dropdown(options=models, description="model", style=LABEL, layout=wide)
        self.gpu = W.Dropdown(options=gpus, description="modelled GPU", style=LABEL, layout=wide)
        self.note = W.HTML(layout={"padding": "0 0 0 100px"})
        super().__init__([self.model, self.gpu, self.note])
        self._taking = False
        self.take(choice)
        for menu in (self.model, self.gpu):
            menu.observe(lambda _: None if self._taking else changed(), "value")
        self.model.observe(lambda _: self._show_switches(), "value")

    @property
    def choice(self) -> ModelChoice | None:
        """The model and the GPU; None without a model."""
        if self.model.value is None:
            return None
        return ModelChoice(Model(self.model.value), None if self.gpu.value is None else gpu(self.gpu.value))

    def take(self, choice: ModelChoice | None) -> None:
        """Show a choice; no callback follows. Without a model the GPU stays for the next."""
        self._taking = True
        try:
            self.model.value = None if choice is None else choice.model
            if choice is not None:
                self.gpu.value = None if choice.gpu is None else choice.gpu.name
        finally:
            self._taking = False
        self._show_switches()

    def say(self, text: str) -> None:
        """Show one line below the menus."""
        self.note.value = f'<div style="font-size:11px;line-height:1.3;opacity:.8">{text}</div>' if text else ""

    def _show_switches(self) -> None:
        self.gpu.disabled = self.model.value is None
