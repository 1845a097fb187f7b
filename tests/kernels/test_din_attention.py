from __future__ import annotations

import torch

from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.din_attention import attention_pool_cuda
from tests.kernels.cpu_device import CpuDevice


def test_no_rows_launch_nothing(fast_device: CpuDevice) -> None:
    none = torch.zeros(1, dtype=torch.int64)
    bins = bin_rows(none, 0, (3, 33, 100))
    out, top, total = attention_pool_cuda(torch.zeros(0), torch.zeros(0, 8), none, bins, (3, 33, 100))
    assert (out.shape, top.shape, total.shape) == ((0, 8), (0,), (0,))
    assert not fast_device.launched
