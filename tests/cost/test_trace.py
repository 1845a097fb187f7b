"""A trace of a step: phases, operations against torch's own counter, and what costs nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from labkit.cost.trace import Phase, trace_step

DEVICES = pytest.mark.parametrize("device", ["cpu", "meta"])


def model(device: str) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)


@DEVICES
def test_products_are_those_of_torchs_counter(device: str) -> None:
    net, x = model(device), torch.ones(32, 8, device=device)

    def forward() -> Tensor:
        return net(x).sum()

    with FlopCounterMode(display=False) as counter:
        forward().backward()
    trace = trace_step(forward, device=device)
    products = [op.cost for op in trace.ops if op.cost.matmul is not None]
    # forward 2*32*(8*16 + 16*4); backward of the first layer needs the weight's gradient alone
    assert sum(cost.flops for cost in products) == counter.get_total_flops() == 12_288 + 12_288 + 4_096
    assert len(products) == 5


@DEVICES
def test_phases_and_views(device: str) -> None:
    net, x = model(device), torch.ones(32, 8, device=device)
    update = torch.optim.SGD(net.parameters(), lr=0.1, foreach=True)
    trace = trace_step(lambda: net(x).sum(), optimizer=update.step, device=device)
    assert [op.phase for op in trace.ops] == sorted((op.phase for op in trace.ops), key=list(Phase).index)
    forward = {op.name: op.cost for op in trace.ops if op.phase is Phase.FORWARD}
    assert forward["aten.t.default"].kernels == 0
    assert forward["aten.relu.default"] == (512, 2048, 2048, 1, None, None, 2048)  # all of it was just written
    (step,) = (op for op in trace.ops if op.phase is Phase.OPTIMIZER and op.cost.kernels)
    parameters = 8 * 16 + 16 + 16 * 4 + 4
    assert step.name == "aten._foreach_add_.List"
    assert step.cost[:4] == (parameters, 2 * 4 * parameters, 4 * parameters, 1)


@DEVICES
def test_what_the_op_before_wrote_is_fresh_and_nothing_else(device: str) -> None:
    x = torch.ones(4, 5, device=device)

    def forward() -> Tensor:
        y = x * 2  # x is old
        z = y.t().exp()  # y is fresh, seen through a view
        return y + z.t()  # y is old by now

    costs = [op.cost for op in trace_step(forward, backward=False, device=device).ops if op.cost.kernels]
    assert [cost.fresh_bytes for cost in costs] == [0, 80, 80]
    assert [cost.read_bytes for cost in costs] == [80, 80, 160]


def test_the_host_s_own_tensors_cost_the_device_nothing() -> None:
    on_host, x = torch.ones(4), torch.ones(4, device="meta")

    def forward() -> Tensor:
        on_host.add_(1)
        return x + 1

    assert [op.cost.kernels for op in trace_step(forward, backward=False).ops] == [0, 1]
    assert [op.cost.kernels for op in trace_step(forward, backward=False, device="cpu").ops] == [1, 0]


def test_an_operand_given_twice_is_read_once() -> None:
    x = torch.ones(4, device="meta")
    (op,) = trace_step(lambda: x * x, backward=False).ops
    assert op.cost[:4] == (4, 16, 16, 1)
