"""GraphedSteps on a stand-in that records and replays ops: the same results as eager, everything counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from labkit.bench.graph_backend import CudaGraphs
from labkit.bench.graph_inputs import copy_into
from labkit.bench.graphs import GraphedSteps
from labkit.bench.training_state import check_capturable, training_state
from labkit.errors import DeviceError
from tests.bench.tape import Tape, TapeBackend

R = TypeVar("R")


class Batch(NamedTuple):
    values: dict[str, Tensor]
    rows: int


def batch(rows: int, width: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    items = torch.randint(0, 50, (rows, width), generator=generator)
    return Batch({"item": items, "label": torch.randn(rows, generator=generator)}, rows)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.table, self.head, self.norm = nn.Embedding(50, 4), nn.Linear(4, 1), nn.BatchNorm1d(4)

    def forward(self, given: Batch) -> Tensor:
        pooled: Tensor = self.norm(self.table(given.values["item"]).mean(dim=1))
        return self.head(pooled).squeeze(1)  # type: ignore[no-any-return]

    def loss(self, given: Batch) -> Tensor:
        return nn.functional.mse_loss(self(given), given.values["label"])


def training_step(loss: Callable[[Batch], Tensor], optimizer: torch.optim.Optimizer) -> Callable[[Batch], Tensor]:
    def step(batch: Batch) -> Tensor:
        # None, not zero: the backward of a capture then allocates gradients in the graph's pool
        optimizer.zero_grad(set_to_none=True)
        value = loss(batch)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def inference(net: Net) -> Callable[[Batch], Tensor]:
    net.eval()
    return torch.no_grad()(net)


def test_a_replay_gives_what_the_step_gives_for_every_new_batch_of_the_shape() -> None:
    net = Net()
    graphed = GraphedSteps(inference(net), TapeBackend())
    for seed in range(4):
        given = batch(3, 5, seed)
        torch.testing.assert_close(graphed(given), net(given), rtol=0, atol=0)
    assert (graphed.captures, graphed.replays, graphed.fallbacks, graphed.warm_ups) == (1, 4, 0, 3)


def test_without_the_copy_into_static_inputs_a_replay_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    # proves that the check above can fail: the stand-in does not see the tensors of a later batch
    monkeypatch.setattr("labkit.bench.graphs.copy_into", lambda *_: None)
    net = Net()
    graphed = GraphedSteps(inference(net), TapeBackend())
    first = graphed(batch(3, 5, 0)).clone()
    torch.testing.assert_close(graphed(batch(3, 5, 1)), first, rtol=0, atol=0)
    assert not torch.equal(first, net(batch(3, 5, 1)))


def test_results_are_the_graphs_own_tensors() -> None:
    graphed = GraphedSteps(inference(Net()), TapeBackend())
    assert graphed(batch(3, 5, 0)) is graphed(batch(3, 5, 1))


def test_a_graph_for_each_shape_and_a_pool_for_all() -> None:
    backend = TapeBackend()
    graphed = GraphedSteps(inference(Net()), backend)
    for rows, width in [(3, 5), (2, 7), (3, 5), (2, 7), (2, 5)]:
        graphed(batch(rows, width, 0))
    assert (graphed.captures, graphed.replays) == (3, 5)
    assert backend.log == ["warm up 3", "capture"] * 3


def test_shapes_beyond_the_limit_fall_back_and_are_counted() -> None:
    net = Net()
    graphed = GraphedSteps(inference(net), TapeBackend(), most=1)
    graphed(batch(3, 5, 0))
    torch.testing.assert_close(graphed(batch(2, 5, 0)), net(batch(2, 5, 0)), rtol=0, atol=0)
    graphed(batch(3, 5, 1))
    assert (graphed.captures, graphed.replays, graphed.fallbacks) == (1, 2, 1)
    assert {name: figure.value for name, figure in graphed.figures().items()} == {
        "graph_captures": 1,
        "graph_replays": 2,
        "graph_fallbacks": 1,
        "graph_warm_ups": 3,
    }


def test_prepared_shapes_are_captured_one_by_one_and_no_others() -> None:
    seen: list[tuple[int, ...]] = []

    def given() -> Iterator[Batch]:
        yield batch(4, 9, 0)
        assert seen == [(4, 9)] * 2  # no batch is asked for before the one before it is captured
        yield batch(2, 5, 0)
        yield batch(2, 5, 1)

    def step(given: Batch) -> Tensor:
        seen.append(tuple(given.values["item"].shape))
        return given.values["label"] * 2

    graphed = GraphedSteps(step, TapeBackend(), on_first_sight=False, warm_ups=1)
    graphed.prepare(given())
    assert seen == [(4, 9)] * 2 + [(2, 5)] * 2
    graphed(batch(3, 3, 0))
    graphed(batch(4, 9, 1))
    assert (graphed.captures, graphed.replays, graphed.fallbacks) == (2, 1, 1)


def test_what_the_step_reads_on_the_host_is_part_of_the_shape() -> None:
    # `rows` is a constant of the graph: another value needs another graph, unless the step does not read it
    def step(given: Batch) -> Tensor:
        return given.values["label"][: given.rows].sum()

    one, two = batch(3, 5, 0), batch(3, 5, 0)._replace(rows=2)
    graphed = GraphedSteps(step, TapeBackend())
    assert graphed(one).item() == one.values["label"].sum().item()
    assert graphed(two).item() == two.values["label"][:2].sum().item()
    assert graphed.captures == 2


def test_a_batch_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(TypeError, match="by a set"):
        GraphedSteps(lambda given: given, TapeBackend())({"a": {1, 2}})


@pytest.mark.parametrize("momentum", [0, 0.9])
def test_training_through_graphs_is_training(momentum: float) -> None:
    # two shapes in turns; parameters, batch statistics and momentum as if neither warm-up nor capture had been
    def trained(graphs: bool) -> tuple[Net, list[float]]:
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=momentum)
        step = training_step(net.loss, optimizer)
        if graphs:
            step = GraphedSteps(step, TapeBackend(), state=training_state(net, optimizer))
        return net, [step(batch(4, 5 + seed % 2, seed)).item() for seed in range(6)]

    (eager, losses), (graphed, same) = trained(False), trained(True)
    assert same == pytest.approx(losses, rel=1e-6)
    torch.testing.assert_close(dict(graphed.state_dict()), dict(eager.state_dict()))


def test_an_adam_that_counts_its_steps_on_the_host_cannot_be_captured() -> None:
    net = Net()
    step = training_step(net.loss, torch.optim.AdamW(net.parameters()))
    with pytest.raises(DeviceError, match="cannot be captured as a graph"):
        GraphedSteps(step, TapeBackend())(batch(4, 5, 0))


def test_without_the_state_the_warm_up_is_training_too() -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net.head.weight.detach().clone()
    graphed = GraphedSteps(training_step(net.loss, optimizer), TapeBackend(), on_first_sight=False)
    graphed.prepare([batch(4, 5, 0)])
    assert not torch.equal(net.head.weight, before)


def test_a_step_that_waits_for_the_device_cannot_be_captured() -> None:
    def step(given: Batch) -> Tensor:
        return given.values["label"] / given.values["label"].abs().max().item()

    with pytest.raises(DeviceError, match=r"operation not permitted when stream is capturing: .* leave graphs off"):
        GraphedSteps(step, TapeBackend())(batch(3, 5, 0))


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), torch.OutOfMemoryError),
        (RuntimeError("CUDA error: operation not permitted when stream is capturing"), DeviceError),
    ],
)
def test_what_a_step_raises_is_told_and_not_what_the_end_of_its_capture_says(
    error: RuntimeError, raised: type[Exception]
) -> None:
    # like torch.cuda.graph, whose end of a capture raises anew when the step has failed
    class Ending(TapeBackend):
        def capture(self, call: Callable[[], R]) -> tuple[Tape, R]:
            try:
                return super().capture(call)
            finally:
                raise RuntimeError("operation failed due to a previous error during capture")

    steps = iter([None] * 3)

    def step(given: Batch) -> None:
        if next(steps, error) is error:
            raise error

    with pytest.raises(raised, match=str(error)):
        GraphedSteps(step, Ending())(batch(3, 5, 0))


def test_what_is_put_back_after_the_warm_up_is_kept_on_the_host() -> None:
    # on the device it would count in the peak: the whole model once more
    class Copies(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made.append((str(func), (kwargs or {}).get("device")))
            return func(*args, **(kwargs or {}))

    made: list[tuple[str, Any]] = []
    weight = torch.zeros(3)
    graphed = GraphedSteps(lambda given: None, TapeBackend(), state=lambda: {"weight": weight})
    with Copies():
        graphed({"rows": 3})
    assert [op for op in made if op[0] != "aten.detach.default"] == [
        ("aten._to_copy.default", torch.device("cpu")),
        ("aten.copy_.default", None),
    ]


def test_a_capture_without_warm_up_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 warm-up step, got 0"):
        GraphedSteps(lambda given: given, TapeBackend(), warm_ups=0)


def test_tensors_elsewhere_are_constants() -> None:
    # on a CUDA device the counts of a PackedSequence stay on the host: here the device is said to be meta
    given = {"sizes": torch.tensor([3, 2]), "values": torch.zeros(5, device="meta")}

    class Meta(TapeBackend):
        def __init__(self) -> None:
            super().__init__()
            self.device = torch.device("meta")

    graphed = GraphedSteps(lambda b: b["values"].sum(), Meta())
    graphed(given)
    graphed({**given, "sizes": torch.tensor([3, 2])})
    assert graphed.captures == 1
    graphed({**given, "sizes": torch.tensor([4, 1])})
    assert graphed.captures == 2


def test_copying_keeps_the_addresses() -> None:
    static, given = batch(3, 5, 0), batch(3, 5, 1)
    address = static.values["item"].data_ptr()
    copy_into(static, given, torch.device("cpu"))
    assert torch.equal(static.values["item"], given.values["item"])
    assert static.values["item"].data_ptr() == address


def test_an_optimizer_that_counts_on_the_host_is_refused() -> None:
    class OnGpu(nn.Parameter):
        is_cuda = True  # type: ignore[assignment]

    optimizer = torch.optim.AdamW([OnGpu(torch.zeros(2))])
    with pytest.raises(DeviceError, match=r"expected capturable=True, got False; build it as AdamW\("):
        check_capturable(optimizer)
    check_capturable(torch.optim.SGD([OnGpu(torch.zeros(2))], lr=0.1))


def test_an_optimizer_whose_state_does_not_start_at_zero_is_refused() -> None:
    net = Net()
    with pytest.raises(DeviceError, match="NAdam"):
        training_state(net, torch.optim.NAdam(net.parameters()))


@pytest.mark.skipif(torch.cuda.is_available(), reason="what is said where there is no CUDA device")
def test_without_a_cuda_device_there_are_no_graphs() -> None:
    with pytest.raises(DeviceError, match="finds none: see labkit doctor") as caught:
        CudaGraphs()
    assert "\n" not in str(caught.value)
    with pytest.raises(DeviceError, match="got cpu"):
        CudaGraphs("cpu")


def test_cuda_warms_up_and_captures_on_one_side_stream_into_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    class Stream:
        def __init__(self, name: str = "side") -> None:
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            log.append(f"{self.name} waits for {other.name}")

    @contextmanager
    def graph(into: str, pool: str, stream: Stream, capture_error_mode: str) -> Iterator[None]:
        log.append(f"capture {into} on {stream.name} into {pool}, errors of {capture_error_mode}")
        yield
        log.append("end")

    fakes = {
        "is_available": lambda: True,
        "Stream": Stream,
        "current_stream": lambda _: Stream("current"),
        "stream": lambda stream: log.append(f"on {stream.name}") or nullcontext(),
        "device": lambda _: nullcontext(),
        "graph_pool_handle": lambda: "the pool",
        "CUDAGraph": lambda: "a graph",
        "graph": graph,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    backend = CudaGraphs("cuda:0")
    backend.warm_up(lambda: log.append("step"), 2)
    for _ in range(2):
        assert backend.capture(lambda: "output") == ("a graph", "output")
    capture = ["on current", "capture a graph on side into the pool, errors of thread_local", "end"]
    assert log == ["side waits for current", "on side", "step", "step", "current waits for side", *capture, *capture]


@pytest.mark.gpu
def test_training_on_a_gpu_through_graphs_is_training() -> None:
    def trained(graphs: bool) -> list[float]:
        net = Net().cuda()
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, capturable=True)
        step = training_step(net.loss, optimizer)
        if graphs:
            step = GraphedSteps(step, CudaGraphs(), state=training_state(net, optimizer))
        batches = [batch(4, 5 + seed % 2, seed) for seed in range(6)]
        on_gpu = [Batch({name: t.cuda() for name, t in b.values.items()}, b.rows) for b in batches]
        return [step(b).item() for b in on_gpu]

    assert trained(True) == pytest.approx(trained(False), rel=1e-5)
