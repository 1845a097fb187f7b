"""ModelControls: the model whose figures are added to the table, and the GPU that they are for."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as W

from labkit.cost.devices import GPUS, gpu
from labkit.experiments.what_if_model import ModelChoice
from labkit.models.registry import MODELS, Model
from labkit.widgets.log_int import LABEL

#: A menu whose value is None would show nothing at all.
_NONE = ""


class ModelControls(W.VBox):
    """A menu of models and a menu of GPUs, each with none.

    Args:
        choice: what to start with.
        changed: called (without arguments) after each change by the user.
    """

    def __init__(self, choice: ModelChoice | None, changed: Callable[[], None]) -> None:
        """Lay out both menus."""
        models = [("none: lengths alone", _NONE), *((spec.title, model) for model, spec in MODELS.items())]
        gpus = [("none: no times", _NONE), *((name, name) for name in GPUS)]
        wide = {"width": "auto"}
        self.model = W.Dropdown(options=models, description="model", style=LABEL, layout=wide)
        self.gpu = W.Dropdown(options=gpus, description="modelled GPU", style=LABEL, layout=wide)
        super().__init__([self.model, self.gpu])
        self._taking = False
        self.take(choice)
        for menu in (self.model, self.gpu):
            menu.observe(lambda _: None if self._taking else changed(), "value")
        self.model.observe(lambda _: self._show_switches(), "value")

    @property
    def choice(self) -> ModelChoice | None:
        """The model and the GPU; None without a model."""
        if not self.model.value:
            return None
        return ModelChoice(Model(self.model.value), gpu(self.gpu.value) if self.gpu.value else None)

    def take(self, choice: ModelChoice | None) -> None:
        """Show a choice; no callback follows. Without a model the GPU stays for the next."""
        self._taking = True
        try:
            self.model.value = _NONE if choice is None else choice.model
            if choice is not None:
                self.gpu.value = _NONE if choice.gpu is None else choice.gpu.name
        finally:
            self._taking = False
        self._show_switches()

    def _show_switches(self) -> None:
        self.gpu.disabled = not self.model.value
