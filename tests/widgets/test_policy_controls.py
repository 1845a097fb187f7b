"""The settings of the panel: a cap that was set on the histogram counts at once and is shown when the hand rests."""

from __future__ import annotations

import threading

from labkit.experiments.lineup import Lineup
from labkit.widgets.policy_controls import PolicyControls


def test_a_cap_set_elsewhere_counts_at_once_and_is_shown_later() -> None:
    calls: list[int] = []
    controls = PolicyControls(Lineup(), 700, lambda: calls.append(1))
    controls.take_cap(300)
    assert (controls.max_length, controls.lineup.max_length, controls.has_cap.value) == (300, 300, False)
    controls.show_cap()
    assert (controls.has_cap.value, controls.cap.value, controls.max_length, calls) == (True, 300, 300, [])
    controls.take_cap(None)
    assert controls.max_length is None
    controls.show_cap()
    assert (controls.has_cap.value, controls.max_length, calls) == (False, None, [])


def test_a_cap_typed_after_it_wins() -> None:
    controls = PolicyControls(Lineup(max_length=500), 700, lambda: None)
    controls.take_cap(300)
    controls.cap.field.value = "400"
    assert controls.max_length == 400
    controls.show_cap()
    assert controls.cap.value == 400


def test_a_change_while_a_cap_is_shown_is_never_lost() -> None:
    calls: list[int] = []
    controls = PolicyControls(Lineup(), 700, lambda: calls.append(controls.rows.value))
    changed = threading.Thread(target=lambda: setattr(controls.rows, "value", 17))
    controls.cap.observe(lambda _: (changed.start(), changed.join(0.2)), "value")  # in the middle of show_cap
    controls.take_cap(300)
    controls.show_cap()
    changed.join(5)
    assert calls == [17]
