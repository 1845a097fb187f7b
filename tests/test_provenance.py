"""A figure has an origin, or no value and a reason; nothing in between."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from labkit.provenance import Figure, Origin


def test_origins_are_their_own_keys_in_json() -> None:
    assert json.dumps(list(Origin)) == '["exact", "modelled", "measured", "recorded"]'


def test_a_value_needs_an_origin() -> None:
    with pytest.raises(ValueError, match="needs an origin") as refused:
        Figure(3, "events", None)
    assert str(refused.value) == (
        "a figure with a value needs an origin (value 3, unit 'events'): use one of exact, modelled, measured, recorded"
    )


@pytest.mark.parametrize("reason", [None, ""])
def test_no_value_needs_a_reason(reason: str | None) -> None:
    with pytest.raises(ValueError, match="needs a reason") as refused:
        Figure(None, "bytes", None, reason)
    assert str(refused.value) == "a figure without a value needs a reason (unit 'bytes')"
    assert Figure(None, "bytes", None, "no GPU here").value is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_a_figure(value: float) -> None:
    with pytest.raises(ValueError, match="does not exist") as refused:
        Figure(value, "s", Origin.MEASURED)
    assert str(refused.value) == f"a figure that is {value} does not exist: use None with a reason (unit 's')"


def test_zero_is_a_value() -> None:
    assert Figure(0, "events", Origin.EXACT).value == 0


def test_a_figure_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Figure(1, "s", Origin.EXACT).value = 2  # type: ignore[misc]
