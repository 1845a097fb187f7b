from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.errors import KernelLaunchError
from labkit.gpu.launch import MAX_BLOCKS, _stream, launch
from labkit.gpu.loader import kernel


def test_a_tensor_that_is_on_no_gpu_is_refused() -> None:
    with pytest.raises(KernelLaunchError, match="runs on a CUDA device, got tensors on cpu"):
        launch("bin_rows", "count_rows", 1, (torch.zeros(1), np.int32(1)), torch.device("cpu"))


@pytest.mark.parametrize("blocks", [-1, MAX_BLOCKS + 1])
def test_blocks_that_no_grid_has(blocks: int) -> None:
    with pytest.raises(KernelLaunchError, match=f"takes 0 to 2147483647 blocks, got {blocks}"):
        launch("bin_rows", "count_rows", blocks, (), torch.device("cuda:0"))


def test_no_blocks_launch_nothing_and_need_no_gpu() -> None:
    launch("bin_rows", "count_rows", 0, (), torch.device("cuda:0"))


def test_kernels_that_the_catalog_does_not_have() -> None:
    with pytest.raises(KernelLaunchError, match="no kernel 'sort' of op 'sort': expected one of bin_rows, "):
        kernel("sort", "sort", 0)
    with pytest.raises(KernelLaunchError, match="expected one of count_rows, start_classes"):
        kernel("bin_rows", "count", 0)


def test_a_stream_of_torch_is_taken_over_without_a_warning_and_once() -> None:
    pytest.importorskip("cupy")
    stream = _stream(0, 0x7F0012345678)
    assert stream.ptr == 0x7F0012345678
    assert _stream(0, 0x7F0012345678) is stream
    assert _stream(1, 0x7F0012345678) is not stream
