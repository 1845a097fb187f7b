"""Copies whose units no 32 bits number, small: every unit there and back, and that a copy that is wrong is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from labkit.gpu.arguments import UNIT_BYTES
from labkit.gpu.ops import copies
from labkit.gpu_check.items import extremes
from labkit.gpu_check.lab import Lab, Sizes
from tests.gpu_check.small import small_lab

CASES = [f"more than 2**32 units of {size} B: copies there and back" for size in sorted(UNIT_BYTES.values())]


def run(lab: Lab, name: str) -> Any:
    (case,) = [case for case in extremes.cases(lab) if case.name == name]
    return case.run()


@pytest.mark.parametrize("name", CASES)
def test_every_unit_comes_back(name: str, tmp_path: Path) -> None:
    lab = small_lab(tmp_path)
    found = run(lab, name)
    assert min(found["units"], found["events"]) > 2 * lab.sizes.most_elements
    assert found["unit_bytes"] == int(name.split()[5])


def test_on_a_device_either_copy_needs_64_bits() -> None:
    sizes = Sizes()
    width = -(-2 * sizes.most_elements // (sizes.many_rows - 3))
    assert width < 2**31
    assert copies.index_type((sizes.many_rows - 3) * width) == "unsigned long long"


@pytest.mark.parametrize(
    ("op", "message"),
    [("jagged_to_padded", "row 69 differs in its slots"), ("padded_to_jagged", "events differ from 0 on")],
)
def test_one_element_that_is_wrong_at_the_end_is_seen(
    op: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(extremes, op)

    def off(*given: Any) -> Tensor:
        result: Tensor = right(*given)
        result.view(-1)[-1] += 1
        return result

    monkeypatch.setattr(extremes, op, off)
    with pytest.raises(AssertionError, match=message):
        run(small_lab(tmp_path), CASES[-1])


def test_where_the_memory_is_too_small_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lab, "fit", lambda *_, **__: 7)
    found = run(small_lab(tmp_path), CASES[0])
    assert found["ok"] is None
    assert found["reason"].startswith("the free memory holds 7 of 70 rows of ")
