"""What kernels are compared with in float64: equal to the reference, and it sees a wrong result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu_check import exact
from labkit.gpu_check.exact import GRADIENTS, Inputs, Rows, by_torch, differences, inputs_of
from labkit.gpu_check.items import kernels
from labkit.reference import attention, embedding, jagged, segments
from tests.gpu_check.small import small_lab

OFFSETS = torch.tensor([0, 3, 3, 4, 44, 50])
HOST = OFFSETS.numpy()


@pytest.fixture
def rows() -> Rows:
    return Rows(OFFSETS, 50, LaunchConfig(2, 4, 8))


def test_torch_in_float64_is_the_reference(rows: Rows) -> None:
    given = inputs_of(rows, 5, torch.float64, 7)
    values, scores, table, ids = (given[name].numpy() for name in ("values", "scores", "table", "ids"))
    padded = jagged.to_padded(values, HOST, 33)
    expected = {
        "sum": segments.segment_sum(values, HOST),
        "mean": segments.segment_sum(values, HOST, mean=True),
        "max": segments.segment_max(values, HOST)[0],
        "embedding": embedding.embedding_pool(table, ids, HOST, scores, mean=True),
        "attention": attention.attention_pool(scores, values, HOST).out,
        "padded": padded,
        "copies": jagged.to_jagged(padded, HOST),
    }
    assert expected.keys() == GRADIENTS.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(by_torch(name, rows, given).numpy(), array, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("dtype", list(exact.CLOSE), ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
def test_the_ops_are_equal(name: str, dtype: torch.dtype, rows: Rows) -> None:
    differences(name, rows, inputs_of(rows, 5, dtype, 7))


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_result_is_seen_and_a_wrong_gradient(name: str, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    right = exact.by_kernels

    def one_is_off(which: str, given_rows: Rows, given: Inputs) -> Tensor:
        result = right(which, given_rows, given)
        off = torch.zeros_like(result)
        off.view(-1)[-1] = 0.01
        return result + off

    def steeper(which: str, given_rows: Rows, given: Inputs) -> Tensor:
        result = right(which, given_rows, given)
        return result + 0.01 * (result - result.detach())

    given = inputs_of(rows, 5, torch.float32, 7)
    for wrong, what in ((one_is_off, "result: 1 of"), (steeper, "gradient of")):
        monkeypatch.setattr(exact, "by_kernels", wrong)
        with pytest.raises(AssertionError, match=f"{name}, {what}"):
            differences(name, rows, given)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["mean", "embedding", "attention"])
def test_zeros_for_small_gradients_are_seen(
    name: str, dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as of a length that is infinity in float16
    lab, right = small_lab(tmp_path), exact.by_kernels
    (case,) = [c for c in kernels.cases(lab) if c.name == f"{name}, {str(dtype)[6:]}, one row of 3000 events"]
    case.run()

    def flat(which: str, given_rows: Rows, given: Inputs) -> Tensor:
        result = right(which, given_rows, given)
        return result.detach() + 0 * result

    monkeypatch.setattr(exact, "by_kernels", flat)
    with pytest.raises(AssertionError, match=f"{name}, gradient of .* got 0"):
        case.run()


def test_a_nan_is_a_difference(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "by_kernels", lambda name, rows, given: by_torch(name, rows, given) * torch.nan)
    with pytest.raises(AssertionError, match="got nan"):
        differences("sum", rows, inputs_of(rows, 5, torch.float32, 7))
