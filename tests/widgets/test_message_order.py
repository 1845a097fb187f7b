"""Messages keep their order: against ipykernel's own comms."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ipykernel.comm.comm import BaseComm
from ipywidgets import Button, Widget

from labkit.widgets.message_order import keep_order
from labkit.widgets.panel_layout import parts_of


class _Comm(BaseComm):  # type: ignore[misc]
    """Publishes nowhere, and remembers the subshell as ipykernel's does."""

    def publish_msg(self, *_: Any, **__: Any) -> None:
        self._reply_subshell_id = None  # on the main thread


@pytest.fixture
def comm() -> Any:
    comm = _Comm(target_name="jupyter.widget")
    comm.send({"method": "update"})
    return comm


def test_a_message_goes_where_the_page_says(comm: Any) -> None:
    assert hasattr(comm, "_reply_subshell_for"), "another ipykernel: is keep_order still needed?"
    assert comm._reply_subshell_for({}, "asked") is None  # ipykernel: where the comm was last published on
    keep_order([cast(Widget, SimpleNamespace(comm=comm))])
    assert comm._reply_subshell_for({}, "asked") == "asked"
    comm.send({"method": "update"})
    assert comm._reply_subshell_for({}, "asked") == "asked"
    assert comm._reply_subshell_for({}, None) is None  # subshells are off


def test_the_reply_to_a_request_goes_back_to_who_asked(comm: Any) -> None:
    comm._reply_subshell_ids["7"] = "who asked"
    keep_order([cast(Widget, SimpleNamespace(comm=comm))])
    assert comm._reply_subshell_for({"content": {"id": "7"}}, "asked") == "who asked"


def test_without_a_kernel_nothing_is_done() -> None:
    keep_order([Button()])


@pytest.mark.parametrize("panel", ["tuning_panel.TuningPanel", "kernel_lab.KernelLab"])
def test_the_panels_keep_their_messages_in_order(panel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = panel.split(".")
    kept: list[Widget] = []
    monkeypatch.setattr(f"labkit.widgets.{module}.keep_order", kept.extend)
    made = getattr(import_module(f"labkit.widgets.{module}"), name)()
    assert {id(part) for part in kept} == {id(part) for part in parts_of(made)}
    made.close()
