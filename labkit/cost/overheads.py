"""Overheads: what no data sheet says about running kernels, as assumptions until ``calibrate`` has fitted them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Overheads:
    """Times and shares that a data sheet does not give.

    Attributes:
        op_s: host time of one op: Python, autograd, dispatcher. A view costs as much.
        launch_s: host time of one kernel launch.
        step_s: host time of one step beside its ops: the loop, the copy of a batch.
        kernel_s: device time of a kernel beyond its work: filling and draining the chip.
        gap_s: idle time of the device between two kernels that wait in its queue.
        graph_launch_s: host time of the replay of a CUDA graph and of the copies into its inputs.
        graph_gap_s: idle time of the device between two kernels of a graph.
        bandwidth_share: of the peak bandwidth that kernels reach.
        flops_share: of the peak operations that kernels reach where tiles fit.
        l2_speedup: bandwidth of the second-level cache over that of the memory.
        is_asynchronous: the host runs ahead of the device; False on a CPU, where both are one.
        source: of the figures; ``assumed`` until they are fitted.
    """

    op_s: float = 5e-6
    launch_s: float = 4e-6
    step_s: float = 50e-6
    kernel_s: float = 1.5e-6
    gap_s: float = 0.9e-6
    graph_launch_s: float = 10e-6
    graph_gap_s: float = 0.5e-6
    bandwidth_share: float = 0.85
    flops_share: float = 0.8
    l2_speedup: float = 2.0
    is_asynchronous: bool = True
    source: str = "assumed"


#: The assumptions, and where they come from:
#: ``gap_s``, ``graph_gap_s``: a kernel of 2.9 us takes 3.8 us in a queue and 3.4 us in a graph of 20, on a V100.
#: A. Gray, Getting Started with CUDA Graphs, NVIDIA Technical Blog, 2019.
#: ``launch_s``, ``op_s``: launches take some microseconds of the host, an eager op of PyTorch as much again in Python,
#: autograd and dispatcher; both follow the host's clock, not the GPU: no source is better than a fit.
#: ``graph_launch_s``: 2.5 us and 1 ns a node (Constant Time Launch for Straight-Line CUDA Graphs,
#: NVIDIA Technical Blog, 2024), and the copies into the static inputs.
#: ``bandwidth_share``, ``flops_share``: what copies and large matrix products commonly reach of the data sheet.
#: ``l2_speedup``: measured caches of this table are 2 to 3 times as fast as the memory; no data sheet says.
ASSUMED = Overheads()
