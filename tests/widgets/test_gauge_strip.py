from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from labkit.bench import gauge_feed
from labkit.widgets import gauge_strip
from labkit.widgets.gauge_strip import GaugeStrip


@pytest.fixture
def strip():
    made = GaugeStrip()
    yield made
    made.close()


def first_sample(strip: GaugeStrip) -> dict[str, object]:
    come = threading.Event()
    strip.observe(lambda _: come.set(), "sample")
    assert come.wait(20)
    return strip.sample


def feeds() -> int:
    return sum(t.name == "labkit-gauges" for t in threading.enumerate())


def test_nothing_is_sampled_before_it_is_seen(strip) -> None:
    assert (strip.running, strip.sample, feeds()) == (False, {}, 0)


def test_it_streams_while_it_is_seen_and_wanted(strip) -> None:
    strip.set_state({"visible": True})
    assert strip.running
    sample = first_sample(strip)
    assert [g["title"] for g in sample["gauges"]][-3:] == ["CPU", "host memory", "GPU"] or len(sample["gauges"]) == 6
    assert sample["cost"].startswith("costs ")
    strip.set_state({"wanted": False})
    assert not strip.running
    strip.set_state({"wanted": True})
    assert strip.running
    strip.set_state({"visible": False})
    assert not strip.running


def test_a_page_that_draws_nothing_any_more_ends_it(strip, monkeypatch) -> None:
    monkeypatch.setattr(gauge_strip, "_UNSEEN", 0)
    unseen = threading.Event()
    strip.observe(lambda change: change["new"] or unseen.set(), "visible")
    strip.set_state({"visible": True})
    assert unseen.wait(20)
    assert not strip.running


def test_what_ends_it_is_shown(strip, monkeypatch) -> None:
    def broken(_: object) -> None:
        raise OSError("no /proc here")

    monkeypatch.setattr("labkit.bench.machine_gauges.MachineGauges.read", broken)
    shown = threading.Event()
    strip.observe(lambda change: change["new"] and shown.set(), "problem")
    strip.set_state({"visible": True})
    assert shown.wait(20)
    assert "no /proc here" in strip.problem
    assert (strip.wanted, strip.running) == (False, False)


def test_closing_leaves_no_thread() -> None:
    strip = GaugeStrip()
    strip.set_state({"visible": True})
    assert feeds() == 1
    strip.close()
    strip.close()
    assert feeds() == 0
    strip.visible = True
    assert feeds() == 0


def test_pausing_and_playing_quickly_leaves_one_sampler_that_streams(strip, monkeypatch) -> None:
    open_now, most, lock = [0], [0], threading.Lock()
    opened, closed = gauge_feed.MachineGauges.__init__, gauge_feed.MachineGauges.close

    def counted(self: object, by: int, call: Callable[[object], None]) -> None:
        with lock:
            open_now[0] += by
            most[0] = max(most[0], open_now[0])
        call(self)

    monkeypatch.setattr(gauge_feed.MachineGauges, "__init__", lambda self: counted(self, 1, opened))
    monkeypatch.setattr(gauge_feed.MachineGauges, "close", lambda self: counted(self, -1, closed))
    strip.set_state({"visible": True})
    first_sample(strip)
    for i in range(20):
        strip.set_state({"wanted": bool(i % 2)})
        assert sum(t.name == "labkit-sampler" for t in threading.enumerate()) <= 1
    assert strip.running
    for _ in range(2):
        first_sample(strip)
    assert (most[0], feeds()) == (1, 1)
    strip.set_state({"wanted": False})
    assert not strip.running


def test_an_ended_feed_that_is_wanted_again_by_then_begins_anew(strip) -> None:
    strip.set_state({"visible": True})
    first = strip._feed
    first_sample(strip)
    strip.set_state({"visible": False})
    strip.set_state({"visible": True})
    first.stop(wait=True)
    assert strip._feed is not first
    first_sample(strip)
    assert strip.running
