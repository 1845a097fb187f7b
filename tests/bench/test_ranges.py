"""NVTX ranges: nested and balanced where torch has them, nothing and one notice where it has not."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

from labkit.batching.policy import BatchPolicy
from labkit.bench import ranges
from labkit.bench.ranges import nvtx_is_there, nvtx_phase, nvtx_range
from labkit.experiments.measure import measure


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    nvtx_is_there.cache_clear()
    yield
    nvtx_is_there.cache_clear()


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What torch's NVTX is told: a push as its name, a pop as "-"."""
    told: list[str] = []
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", told.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: told.append("-"))
    assert nvtx_is_there()
    told.clear()
    return told


def test_strategy_and_phase_are_nested_in_labkit(stack: list[str]) -> None:
    with nvtx_range("bucket_graph", "step"):
        with nvtx_phase("forward"):
            stack.append("work")
        with nvtx_phase("backward"):
            pass
    assert stack == ["labkit", "bucket_graph", "step", "forward", "work", "-", "backward", "-", "-", "-", "-"]


@pytest.mark.parametrize(("train", "phases"), [(True, ["forward", "backward", "optimizer"]), (False, ["forward"])])
def test_the_phases_of_a_measured_step_have_ranges(stack: list[str], train: bool, phases: list[str]) -> None:
    measure("pooled", [3, 1, 2], BatchPolicy("pad_max", rows=3), epoch=True, train=train)
    timed = stack[stack.index("labkit") :]
    inside = [part for phase in phases for part in (phase, "-")]
    assert timed == ["labkit", "pad_max", "step", *inside, "-", "-", "-"]


def test_ranges_are_closed_when_the_work_raises(stack: list[str]) -> None:
    with pytest.raises(KeyError), nvtx_range("jagged"):
        raise KeyError
    assert stack == ["labkit", "jagged", "-", "-"]


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "*", "[a"])
def test_names_that_a_filter_would_misread_are_refused(stack: list[str], name: str) -> None:
    with pytest.raises(ValueError, match="plain words"), nvtx_range(name):
        pass
    assert stack == []


def test_without_nvtx_nothing_happens_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("NVTX functions not installed")

    monkeypatch.setattr(torch.cuda.nvtx, "range_push", fail)
    caplog.set_level(logging.INFO, logger=ranges.__name__)
    done = []
    for _ in range(3):
        with nvtx_range("jagged", "forward"):
            done.append(1)
    assert len(done) == 3
    assert [record.message for record in caplog.records] == [
        f"NVTX ranges do nothing: torch {torch.__version__} is built without CUDA"
    ]
