"""Storages are counted once, from the op that made them to the end of the last view."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from labkit.cost.allocations import HELD, AllocationTrace
from labkit.cost.memory import CUDA_BLOCK_BYTES

DEVICES = pytest.mark.parametrize("device", ["cpu", "meta"])


@DEVICES
def test_peak_and_live_of_a_chain(device: str) -> None:
    x = torch.ones(10, device=device)  # from outside
    with AllocationTrace() as trace:
        y = x + 1  # 40
        z = y * 2  # 80
        del y  # 40
        w = z - 1  # 80
    assert (trace.live_bytes, trace.peak_bytes) == (80, 80)
    assert trace.ops == ["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]
    assert trace.peak_op == "aten.mul.Tensor"
    del z, w
    assert trace.live_bytes == 0


@DEVICES
def test_views_and_in_place_results_count_once(device: str) -> None:
    x = torch.ones(4, 5, device=device)
    with AllocationTrace() as trace:
        x.view(20).add_(1)  # a storage from outside, in place
        assert trace.live_bytes == 0
        y = x * 2  # 80 bytes
        views = [y.t(), y[1:], y.view(20)]
        y.mul_(3)
        del y
        assert trace.live_bytes == 80  # the views keep it
        del views
    assert (trace.live_bytes, trace.peak_bytes) == (0, 80)


@DEVICES
def test_what_is_held_counts_until_it_goes(device: str) -> None:
    x = torch.ones(10, device=device)
    with AllocationTrace() as trace:
        trace.hold([x, x.view(2, 5)])
        assert (trace.live_bytes, trace.peak_op) == (40, HELD)
        y = x.exp()
        del x
    assert (trace.live_bytes, trace.peak_bytes) == (40, 80)
    del y


@DEVICES
def test_blocks_are_rounded(device: str) -> None:
    with AllocationTrace(rounding=CUDA_BLOCK_BYTES) as trace:
        kept = [torch.empty(n, dtype=torch.uint8, device=device) for n in (0, 1, 512, 513)]  # 0 + 512 + 512 + 1024
    assert trace.peak_bytes == 2048
    assert trace.sizes == [0, 1, 512, 513]
    del kept


@DEVICES
def test_resized_storages_count_at_their_size(device: str) -> None:
    with AllocationTrace() as trace:
        x = torch.empty(4, device=device)
        x.resize_(10)
        assert trace.live_bytes == 40
        del x
    assert trace.live_bytes == 0


def step(device: str) -> AllocationTrace:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.PReLU(), torch.nn.Linear(16, 1)).to(device)
    x = torch.ones(32, 8, device=device)
    with AllocationTrace() as trace:
        trace.hold([*model.parameters(), x])
        model(x).square().mean().backward()
    return trace


def test_a_training_step_is_the_same_on_meta_and_cpu() -> None:
    on_cpu, on_meta = step("cpu"), step("meta")
    assert on_cpu.events == on_meta.events
    assert on_cpu.sizes == on_meta.sizes
    assert on_cpu.peak_bytes == on_meta.peak_bytes > 0


def test_saved_activations_go_during_backward() -> None:
    x = torch.ones(1000, requires_grad=True)
    with AllocationTrace() as trace:
        loss = x.exp().exp().sum()  # 4000 + 4000 saved, 4
        assert trace.live_bytes == 8004
        loss.backward()
        del loss
    assert trace.live_bytes == 4000  # the gradient


@DEVICES
def test_gradients_are_added_in_place_as_they_are_when_nobody_looks(device: str) -> None:
    table = torch.ones(1000, 4, device=device, requires_grad=True)
    first, second = (torch.zeros(n, dtype=torch.long, device=device) for n in (3, 5))
    loss = torch.nn.functional.embedding(first, table).sum() + torch.nn.functional.embedding(second, table).sum()
    with AllocationTrace() as trace:
        loss.backward()
    # two gradients of 16 000 bytes, the second added to the first
    assert trace.ops.count("aten.add_.Tensor") == 1
    assert 32_000 <= trace.peak_bytes < 33_000
    assert trace.live_bytes == 16_000


@DEVICES
def test_a_gradient_that_two_hold_is_not_added_to(device: str) -> None:
    x = torch.ones(1000, device=device, requires_grad=True)
    y = x * 2
    loss = (y + y).sum()
    with AllocationTrace() as trace:
        loss.backward()
    assert "aten.add.Tensor" in trace.ops
    assert "aten.add_.Tensor" not in trace.ops


def test_the_peak_is_that_of_torchs_own_allocator() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
    x = torch.ones(100, 64)

    def train() -> None:
        model.zero_grad(set_to_none=True)
        y = x
        for _ in range(3):  # weights used several times: their gradients are added up
            y = model(y)
        y.sum().backward()

    train()
    model.zero_grad(set_to_none=True)
    with AllocationTrace() as trace:
        train()
    model.zero_grad(set_to_none=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiled:
        train()
    changes = [e.nbytes() for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for change in changes:
        live += change
        peak = max(peak, live)
    # a sum on the CPU takes a few bytes of scratch
    assert trace.peak_bytes <= peak <= trace.peak_bytes + 64


def sparse_coo() -> Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (2, 2), check_invariants=True)


def sparse_csr() -> Tensor:
    return torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.ones(2), (2, 2), check_invariants=True
    )


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize(("build", "held"), [(sparse_coo, 32 + 8), (sparse_csr, 24 + 16 + 8)])
def test_parts_of_sparse_tensors_are_storages(build: Callable[[], Tensor], held: int) -> None:
    matrix = build()
    with AllocationTrace() as trace:
        trace.hold([matrix])
        product = matrix @ torch.ones(2, 3)  # ones 24, product 24
    assert (trace.live_bytes, trace.peak_bytes) == (held + 24, held + 48)
    del product


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_parts_of_nested_tensors_are_storages() -> None:
    nested = torch.nested.nested_tensor([torch.ones(3, 2), torch.ones(5, 2)], layout=torch.jagged)
    with AllocationTrace() as trace:
        doubled = nested * 2  # 8 events of 2 floats; the offsets are shared
    assert trace.peak_bytes == 64
    del doubled
