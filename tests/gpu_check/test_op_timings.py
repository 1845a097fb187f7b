"""What is timed: all rows by the op, fewer by what has no room for them; and a result that is wrong is no timing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from labkit.gpu_check.items import op_calls, op_timings
from labkit.gpu_check.lab import Lab
from tests.gpu_check.small import SMALL, small_lab


def run(lab: Lab, name: str) -> Any:
    (case,) = [case for case in op_timings.cases(lab) if case.name == name]
    return case.run()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for all the rows, but for a quarter of their rectangles."""

    def fit(self: Lab, rows: int, bytes_a_row: float, share: float = 0.5) -> int:
        return rows if bytes_a_row < SMALL.dim * 4 * SMALL.longest else rows // 4

    monkeypatch.setattr(Lab, "fit", fit)


@pytest.mark.usefixtures("narrow")
def test_the_op_has_all_rows_and_padded_peers_what_fits_scaled_and_labelled(tmp_path: Path) -> None:
    found = run(small_lab(tmp_path), "segment_sum, zipf")
    assert found["rows"] == SMALL.rows
    padded, ragged = found["peers"]["sum of padded"], found["peers"]["index_add"]
    assert padded["timed_rows"] == SMALL.rows // 4
    assert padded["scaled_by"] >= 4  # rows, times the longest row of all over that of the part
    assert padded["median_s"] == pytest.approx(padded["timed_s"] * padded["scaled_by"])
    assert "scaled_by" not in ragged


@pytest.mark.usefixtures("narrow")
def test_a_peer_that_runs_out_of_memory_has_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = op_calls.scattered_sum

    def hungry(values: Tensor, ids: Tensor, rows: int) -> Tensor:
        if rows == SMALL.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 50 GiB")
        return right(values, ids, rows)

    monkeypatch.setattr(op_calls, "scattered_sum", hungry)
    assert run(small_lab(tmp_path), "segment_sum, zipf")["peers"]["index_add"]["timed_rows"] == SMALL.rows // 4


def test_embeddings_have_both_their_floors(tmp_path: Path) -> None:
    found = run(small_lab(tmp_path), "embedding_pool, uniform")
    # every entry of the table once, or one for every event
    assert found["gathered_bytes"] - found["floor_bytes"] == (found["events"] - SMALL.items) * SMALL.dim * 4


@pytest.mark.parametrize("off", [1.0, torch.nan])
@pytest.mark.parametrize("op", ["segment_sum", "attention_pool", "padded_to_jagged", "embedding_pool_table_grad"])
def test_a_wrong_result_is_not_timed(op: str, off: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(op_calls, op)

    def wrong(*given: Any) -> Any:
        result = right(*given)
        (result[0] if isinstance(result, tuple) else result).view(-1)[-1] += off
        return result

    monkeypatch.setattr(op_calls, op, wrong)
    with pytest.raises(AssertionError, match=r"^1 of \d+ differ from "):
        run(small_lab(tmp_path), f"{op}, zipf")
