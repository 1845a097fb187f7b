"""On a CUDA device: profiles of kernels that are known, peaks of the allocator, graphs and what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from labkit.bench.graph_backend import CudaGraphs
from labkit.bench.graphs import GraphedSteps
from labkit.bench.observers.launches import profile_step
from labkit.bench.observers.memory import CudaMemory
from labkit.bench.ranges import nvtx_is_there, nvtx_range
from labkit.bench.timing import clock_of, time_steps
from labkit.errors import DeviceError

pytestmark = pytest.mark.gpu

DEVICE = torch.device("cuda", 0)
MIB = 2**20
KERNELS = 7


def additions(x: Tensor) -> Callable[[], None]:
    """A step of so many kernels, one an op."""

    def step() -> None:
        for _ in range(KERNELS):
            x.add_(1)

    step()
    return step


def block(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, device=DEVICE)


# --- launches and kernels


def test_every_kernel_of_a_step_is_counted_and_each_has_a_launch() -> None:
    found = profile_step(additions(torch.zeros(1000, device=DEVICE)), DEVICE)
    assert (found.launches, found.kernels) == (KERNELS, KERNELS)
    assert found.busy_s > 0


def test_the_replay_of_a_graph_is_one_launch_of_all_its_kernels() -> None:
    graphs = GraphedSteps(lambda x: [x.add_(1) for _ in range(KERNELS)], CudaGraphs(DEVICE))
    x = torch.zeros(1000, device=DEVICE)
    graphs(x)
    found = profile_step(lambda: graphs(x), DEVICE)
    assert (found.launches, found.kernels) == (1, KERNELS)


def test_copies_are_no_kernels() -> None:
    x, page_locked = torch.zeros(1000, device=DEVICE), torch.zeros(1000).pin_memory()
    step = additions(x)

    def copying() -> None:
        x.copy_(page_locked, non_blocking=True)
        step()

    copying()
    assert profile_step(copying, DEVICE).kernels == KERNELS


def test_a_named_range_is_no_kernel() -> None:
    weight = torch.nn.Parameter(torch.zeros(1000, device=DEVICE))
    weight.grad = torch.ones_like(weight)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)

    def step() -> None:
        with torch.profiler.record_function("mine"):
            optimizer.step()  # has a range of its own

    step()
    assert profile_step(step, DEVICE).kernels == 1


def test_kernels_on_two_streams_are_all_counted() -> None:
    x, y, side = torch.zeros(1000, device=DEVICE), torch.zeros(1000, device=DEVICE), torch.cuda.Stream(DEVICE)
    here, there = additions(x), additions(y)
    torch.cuda.synchronize(DEVICE)

    def both() -> None:
        here()
        with torch.cuda.stream(side):
            there()

    assert profile_step(both, DEVICE).kernels == 2 * KERNELS


def test_a_step_without_a_kernel_is_no_profile() -> None:
    with pytest.raises(RuntimeError, match="saw no kernel"):
        profile_step(lambda: None, DEVICE)


def test_ranges_can_be_marked() -> None:
    assert nvtx_is_there()
    with nvtx_range("jagged", "step"):
        torch.zeros(1, device=DEVICE)


def test_the_clock_of_a_device_has_a_time_for_every_step() -> None:
    x = torch.zeros(1000, device=DEVICE)
    timing = time_steps(lambda _: x.add_(1), range(30), clock=clock_of(DEVICE))
    assert timing.n == 30
    assert (timing.step_s > 0).all()
    assert x.unique().tolist() == [30]


# --- memory


def test_a_peak_is_what_was_held_at_one_time_and_not_what_came_before() -> None:
    before = block(256 * MIB)
    del before
    memory = CudaMemory(DEVICE)
    held = torch.cuda.memory_allocated(DEVICE)
    kept = block(64 * MIB)
    passing = block(32 * MIB)
    del passing
    also = block(16 * MIB)
    memory.after_run()
    found = memory.figures()
    assert found["peak_bytes"].value == 96 * MIB
    assert found["allocated_bytes"].value == held + 96 * MIB
    assert found["allocated_bytes"].value <= found["reserved_bytes"].value < held + 256 * MIB
    assert found["device_used_bytes"].value >= torch.cuda.memory_reserved(DEVICE) >= 80 * MIB
    assert 0 <= found["fragmentation"].value < 1
    del kept, also


def test_a_product_leaves_nothing_in_the_peak_of_what_comes_next() -> None:
    # cuBLAS keeps a workspace for each handle and stream, which the allocator counts as allocated
    def peak() -> int:
        memory = CudaMemory(DEVICE)
        kept = block(64 * MIB)
        memory.after_run()
        del kept
        value = memory.figures()["allocated_bytes"].value
        assert value is not None
        return int(value)

    alone = peak()
    a = torch.ones(512, 512, device=DEVICE)
    a @ a
    with torch.cuda.stream(torch.cuda.Stream(DEVICE)):
        a @ a
    torch.cuda.synchronize(DEVICE)
    del a
    assert peak() == alone


# --- graphs


def test_a_capture_puts_the_state_back_and_keeps_no_copy_of_it_on_the_device() -> None:
    table = torch.zeros(16 * MIB, device=DEVICE)  # 64 MiB
    graphs = GraphedSteps(
        lambda given: table.add_(given), CudaGraphs(DEVICE), on_first_sight=False, state=lambda: {"table": table}
    )
    given = torch.ones((), device=DEVICE)
    torch.cuda.synchronize(DEVICE)
    torch.cuda.reset_peak_memory_stats(DEVICE)
    before = torch.cuda.memory_allocated(DEVICE)
    graphs.prepare([given])
    assert torch.cuda.max_memory_allocated(DEVICE) - before < table.nbytes // 2
    assert table.unique().tolist() == [0]
    graphs(given * 3)
    assert table.unique().tolist() == [3]


def in_capture(work: Callable[[], object]) -> Callable[[Tensor], Tensor]:
    """A step that does something under a capture alone."""

    def step(given: Tensor) -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            work()
        return given * 2

    return step


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (lambda: torch.ones(1, device=DEVICE).item(), DeviceError, "cannot be captured as a graph: .*captur"),
        (lambda: block(2**50), torch.OutOfMemoryError, "out of memory"),
    ],
    ids=["waits", "memory"],
)
def test_a_capture_that_fails_says_why_and_the_device_goes_on(
    work: Callable[[], object], error: type[Exception], message: str
) -> None:
    given = torch.ones(3, device=DEVICE)
    with pytest.raises(error, match=message):
        GraphedSteps(in_capture(work), CudaGraphs(DEVICE))(given)
    assert torch.cuda.current_stream(DEVICE) == torch.cuda.default_stream(DEVICE)
    again = GraphedSteps(in_capture(lambda: None), CudaGraphs(DEVICE))
    assert again(given).tolist() == [2, 2, 2]
    assert again(given + 1).tolist() == [4, 4, 4]
