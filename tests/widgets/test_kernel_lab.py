"""KernelLab without a browser: a changed source is checked in a child, and what is wrong comes to its line."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from ipywidgets.widgets.widget import _instances

from labkit.errors import MissingPackageError
from labkit.experiments.kernel_child import KernelRun
from labkit.experiments.kernel_job import KernelJob
from labkit.experiments.kernel_lab import Config, kernel_job
from labkit.experiments.kernel_sources import shipped_sources
from labkit.gpu.verify.proof import Proof
from labkit.widgets.kernel_lab import KernelLab

BARRIER = "  __syncthreads();\n"


@pytest.fixture
def lab() -> Iterator[KernelLab]:
    made = KernelLab(Config(op="bin_rows", preset="cdnow", counted_rows=40, timed_rows=100))
    yield made
    made.close()


def test_it_opens_with_the_shipped_source_regimes_and_floor(lab: KernelLab) -> None:
    assert lab.editor.texts == shipped_sources("bin_rows")
    assert lab.results.thresholds == (16, 32, 1024)
    assert "floor of the bytes" in lab.results.time.value
    assert "<b>Check</b>" in lab.results.counts.value
    assert (lab.editor.marks, lab.answer) == ([], None)


def test_the_shipped_source_has_no_mark_and_a_dropped_barrier_is_marked_at_its_lines(lab: KernelLab) -> None:
    lab.check()
    assert lab.wait()
    assert "✓ proved" in lab.message.value
    assert lab.editor.marks == []
    assert {figure["file"] for figure in lab.editor.figures} <= set(lab.editor.texts)
    assert "sm_90" in lab.results.resources.value
    text = lab.editor.texts["bin_rows.cu"].replace(BARRIER, "", 1)
    lab.editor.set_state({"texts": {**lab.editor.texts, "bin_rows.cu": text}})
    assert "labkit-old" in lab.message._dom_classes
    lab.editor.set_state({"asked": 1})  # Ctrl+Enter
    assert lab.wait()
    assert "✗ not proved" in lab.message.value
    assert "labkit-old" not in lab.message._dom_classes
    raced = {text.splitlines()[mark["line"] - 1].strip() for mark in lab.editor.marks if mark["kind"] == "race"}
    assert "if (threadIdx.x < CLASSES) count[threadIdx.x] = 0;" in raced
    assert lab.editor.checked["bin_rows.cu"] == text
    assert not lab.controls.check.disabled
    lab.controls.reset.click()
    assert lab.editor.texts == shipped_sources("bin_rows")


def test_what_is_counted_are_the_lengths_asked_for_last(lab: KernelLab, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[KernelJob] = []
    monkeypatch.setattr(KernelRun, "run", lambda self, _: jobs.append(self.job))
    lab.controls.data.source.value = "basket-items"
    lab.count()  # at once: nobody waits for the lengths
    lab.count()
    assert lab.controls.check.disabled
    assert lab.wait()
    wanted = Config(op="bin_rows", preset="basket-items", counted_rows=40, timed_rows=100)
    assert jobs == [kernel_job(wanted, wanted.histogram(), shipped_sources("bin_rows"), proof=False)]
    assert not lab.controls.check.disabled


def test_counts_alone_draw_bars_without_a_proof(lab: KernelLab) -> None:
    lab.controls.count.click()
    assert lab.controls.check.disabled
    assert lab.wait()
    assert lab.editor.figures
    assert "modelled" in lab.results.counts.value
    assert lab.message.value == lab.said.text == ""


def test_another_kernel_keeps_the_changes_of_the_old_one(lab: KernelLab) -> None:
    changed = {**lab.editor.texts, "bin_rows.cu": "// mine"}
    lab.editor.set_state({"texts": changed})
    lab.controls.op.value = "segment_pool"
    assert lab.wait()
    assert lab.editor.texts == shipped_sources("segment_pool")
    lab.controls.op.value = "bin_rows"
    assert lab.wait()
    assert lab.editor.texts == changed
    assert lab.editor.shipped == shipped_sources("bin_rows")


def test_other_lengths_move_the_thresholds(lab: KernelLab) -> None:
    lab.controls.data.source.value = "ml-100k"
    assert lab.wait()
    assert lab.results.thresholds == (32, 64, 1024)


def test_cancel_ends_the_check_and_the_buttons_come_back(lab: KernelLab) -> None:
    lab.check()
    lab.check()  # while one runs, another is not begun
    lab.controls.cancel.click()
    assert lab.wait()
    assert lab.answer is None
    assert not lab.controls.check.disabled
    assert lab.controls._stage.value == "cancelled"


def test_a_child_that_is_slow_to_end_holds_up_neither_the_page_nor_what_is_asked_next(
    lab: KernelLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, cancelled = threading.Event(), KernelRun.cancel
    in_time = []

    def slow(run: KernelRun) -> None:
        in_time.append(ends.wait(10))  # false where the clicks below wait for this
        cancelled(run)

    monkeypatch.setattr(KernelRun, "cancel", slow)
    lab.check()
    assert lab._quick.wait()  # the child is asked for
    lab.controls.cancel.click()  # comes back though the child has not ended
    lab.controls.op.value = "segment_pool"
    assert lab.editor.texts == shipped_sources("segment_pool")
    ends.set()
    assert lab.wait()
    assert lab.answer is None
    assert in_time
    assert all(in_time)


def test_what_the_compiler_says_of_a_source_is_text(lab: KernelLab) -> None:
    why = "compiling: <img src=x onerror=alert(1)>"
    proof = Proof(
        op="bin_rows",
        file="bin_rows.cu",
        kernels=(),
        trials=0,
        equal=None,
        not_proved=(why,),
        reports=(),
        resources={},
        counts=(),
    )
    lab.results.show_proof(proof)
    assert "<img" not in lab.results.resources.value
    assert "&lt;img" in lab.results.resources.value


def test_a_missing_compiler_is_said_with_its_install_line(lab: KernelLab, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise MissingPackageError("there is no g++ here: sudo apt-get install g++")

    monkeypatch.setattr(KernelRun, "run", missing)
    lab.check()
    assert lab.wait()
    assert "sudo apt-get install g++" in lab.said.text
    assert lab.said.is_error
    assert not lab.controls.check.disabled


def test_a_file_that_is_not_there_is_said_and_the_panel_lives(lab: KernelLab) -> None:
    lab.controls.data.source.value = "file"
    lab.controls.data.path.value = "nowhere.csv"
    lab.controls.data.open_button.click()
    assert lab.wait()
    assert "nowhere.csv" in lab.said.text
    assert lab.said.is_error
    lab.controls.data.source.value = "ml-100k"
    assert lab.wait()
    assert lab.results.thresholds == (32, 64, 1024)


def test_a_panel_that_is_replaced_leaves_nothing_behind() -> None:
    config = Config(op="bin_rows", preset="cdnow", counted_rows=40, timed_rows=100)
    before = set(_instances)
    first = KernelLab(config)
    first.controls.data.source.value = "ml-100k"  # another figure
    assert first.wait()
    second = KernelLab(config, replaces=first)
    assert first.comm is None
    second.close()
    second.close()
    assert set(_instances) == before
