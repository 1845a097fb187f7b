from __future__ import annotations

import threading

import pytest

from labkit.widgets.newest_wins import NewestWins


class Recorder:
    """What the worker did, with a gate that holds it."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.errors: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Event()

    def work(self, request: object) -> None:
        self.inside.set()
        assert self.gate.wait(10)
        if isinstance(request, Exception):
            raise request
        self.done.append(request)

    def settle(self) -> None:
        self.done.append("settled")


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def worker(recorder):
    made: NewestWins[object] = NewestWins(recorder.work, recorder.settle, recorder.errors.append, quiet_s=60)
    yield made
    recorder.gate.set()
    made.close()


def test_a_request_that_was_not_started_is_replaced_by_the_newest(recorder, worker):
    recorder.gate.clear()
    worker.submit(0)
    assert recorder.inside.wait(10)  # 0 runs; 1 .. 199 wait one after the other
    for i in range(1, 200):
        worker.submit(i)
    recorder.gate.set()
    assert worker.wait()
    assert recorder.done == [0, "settled", 199, "settled"] or recorder.done == [0, 199, "settled"]


def test_pictures_follow_the_last_request_once(recorder, worker):
    worker.submit(1)
    assert worker.wait()
    assert recorder.done == [1, "settled"]


def test_pictures_wait_until_the_hand_rests(recorder):
    worker: NewestWins[object] = NewestWins(recorder.work, recorder.settle, recorder.errors.append, quiet_s=0.3)
    settled = threading.Event()
    worker._settle = lambda: (recorder.settle(), settled.set())
    for i in range(5):
        recorder.inside.clear()
        worker.submit(i)
        assert recorder.inside.wait(10)
    assert "settled" not in recorder.done
    assert settled.wait(10)  # nobody waits for it but the pause
    assert recorder.done[-2:] == [4, "settled"]
    worker.close()


def test_actions_are_never_skipped_and_keep_their_order(recorder, worker):
    recorder.gate.clear()
    worker.submit(0)
    assert recorder.inside.wait(10)
    for name in ("a", "b", "c"):
        worker.call(lambda name=name: recorder.done.append(name))
    recorder.gate.set()
    assert worker.wait()
    assert [x for x in recorder.done if x in ("a", "b", "c")] == ["a", "b", "c"]


def test_an_action_finds_the_answer_of_what_was_asked_before_it(recorder, worker):
    recorder.gate.clear()
    worker.submit(0)
    assert recorder.inside.wait(10)
    worker.submit(1)
    worker.submit(2)
    worker.call(lambda: recorder.done.append("export"))
    worker.submit(3)
    worker.submit(4)
    recorder.gate.set()
    assert worker.wait()
    assert [x for x in recorder.done if x != "settled"] == [0, 2, "export", 4]


def test_an_error_is_reported_and_the_worker_goes_on(recorder, worker):
    worker.submit(ValueError("broken"))
    assert worker.wait()
    worker.submit(2)
    assert worker.wait()
    assert [str(e) for e in recorder.errors] == ["broken"]
    assert 2 in recorder.done


def test_the_thread_ends_by_itself_and_comes_back_when_needed(recorder, worker):
    worker.submit(1)
    assert worker.wait()
    thread = worker._thread
    thread.join(10)
    assert not thread.is_alive()
    worker.submit(2)
    assert worker.wait()
    assert 2 in recorder.done


def test_an_error_that_cannot_be_shown_does_not_end_the_worker(recorder, caplog):
    def broken(_):
        raise RuntimeError("no screen")

    worker: NewestWins[object] = NewestWins(recorder.work, recorder.settle, broken, quiet_s=60)
    worker.submit(ValueError("first"))
    assert worker.wait(10)
    worker.submit(2)
    assert worker.wait(10)
    assert 2 in recorder.done
    assert "could not be shown: first" in caplog.text
    worker.close()


def test_nothing_is_taken_after_close(recorder, worker):
    worker.close()
    worker.submit(1)
    worker.call(lambda: recorder.done.append("action"))
    assert worker.wait(10)
    worker.close()
    assert recorder.done == []


def test_wait_says_when_the_time_is_up(recorder, worker):
    recorder.gate.clear()
    worker.submit(1)
    assert worker.wait(0.05) is False
