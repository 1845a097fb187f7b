"""calibrate: micro-benchmarks on the device at hand, and the overheads of the cost model fitted to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.cost.calibration import Calibration, Line, Probe, Timing, calibrate
from labkit.cost.devices import Gpu, gpu
from labkit.experiments.device_choice import open_device

_COUNTS = (20, 100, 400)  # ops in a row; a CUDA queue holds some thousand
_REPLAYS = (5, 20, 50)  # of a graph, each with the copies of its inputs
_INPUTS = 5  # tensors of a batch: ids, a target, a label, lengths, what is valid
_MIB = 2**20
#: Cycles that a CUDA device waits so that the host can fill its queue behind it: tens of milliseconds.
_HEAD_START_CYCLES = 50_000_000


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A device and its fitted overheads.

    Attributes:
        device: of the data sheet; of a CPU its measured peaks.
        calibration: overheads, and the lines with what they do not explain.
    """

    device: Gpu
    calibration: Calibration


def calibrate_here(device: torch.device | str = "cpu", *, repeats: int = 5, most_bytes: int = 256 * _MIB) -> Calibrated:
    """Measure and fit the device at hand.

    Args:
        device: ``cpu``, or a CUDA device that is in the table of GPUs.
        repeats: of each timing, of which the shortest counts: what makes the others longer is other work.
        most_bytes: of the largest copy; on a GPU more where its cache is large: see ``copies_of``.

    Raises:
        DeviceError: no such device.
        GpuError: a CUDA device that the table does not have.
        CostError: timings too noisy for a line.

    Cost: a second or two; the machine should do nothing else.
    """
    where = open_device(device)
    if where.type == "cpu":
        return of_cpu([*_host(where, repeats), *_work(where, repeats, copies_of(most_bytes, 0), 0)])
    card = gpu(torch.cuda.get_device_name(where))
    try:
        with torch.cuda.device(where):  # graphs, events and waits are those of the current device
            sizes = copies_of(most_bytes, card.l2_bytes)
            timings = [*_host(where, repeats), *_queue(where, repeats), *_work(where, repeats, sizes, card.l2_bytes)]
    finally:
        torch.cuda.empty_cache()  # the copies took gigabytes that a child of this process may need
    return Calibrated(card, calibrate(timings, card))


def copies_of(most_bytes: int, l2_bytes: int) -> tuple[int, int, int]:
    """Bytes of three copies, the largest ``most_bytes``, or more where the cache would hold a part of the smallest.

    One that is no more than 8 times the cache finds so much of its data there that it looks faster than the memory.
    """
    if not l2_bytes:
        return most_bytes // 16, most_bytes // 4, most_bytes
    least = max(most_bytes // 4, 8 * l2_bytes)
    return least, 2 * least, 4 * least


def of_cpu(timings: list[Timing]) -> Calibrated:
    """A CPU as a device of the cost model: its peaks are what copies and products reached; its cache is left out."""
    blank = Gpu("CPU", torch.get_num_threads(), 1, 0.0, 1.0, {}, 0, 1.0, 0, "measured")
    lines = {line.probe: line for line in calibrate(timings, blank, is_asynchronous=False).lines}
    peak, bandwidth = 1 / lines[Probe.PRODUCT].slope, 1 / lines[Probe.COPY].slope
    clock = peak / 2 / blank.sms
    notes = {"clock_hz": "of one multiply-add a thread and clock; a core does several"}
    card = Gpu("CPU", blank.sms, 1, clock, peak, {}, _memory(), bandwidth, 0, "measured here", notes)
    return Calibrated(card, calibrate(timings, card, is_asynchronous=False))


def residual_lines(found: Calibration) -> list[str]:
    """What each line says and leaves over, for people."""
    return [_text(line) for line in found.lines]


def _text(line: Line) -> str:
    return f"{line.probe}: {line.start:.3g} s + {line.slope:.3g} s each, off by at most {line.worst:.1%}"


def _memory() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


def _host(device: torch.device, repeats: int) -> Iterator[Timing]:
    """Views, and ops with next to nothing to do, one after another, without waiting for a device."""
    x = torch.zeros(16, device=device, requires_grad=True)
    y = torch.zeros(16, device=device)

    def views(count: int) -> None:
        for _ in range(count):
            x.view(4, 4)

    def ops(count: int) -> None:
        for _ in range(count):
            y.add_(1.0)

    for probe, call in ((Probe.HOST_VIEWS, views), (Probe.HOST_OPS, ops)):
        call(_COUNTS[0])
        for count in _COUNTS:
            yield Timing(probe, count, _shortest(lambda: call(count), device, repeats, wait=False))  # noqa: B023 - at once


def _queue(device: torch.device, repeats: int) -> Iterator[Timing]:
    """Kernels with next to nothing to do, behind one another on a CUDA device: in a queue, and as a graph."""
    y = torch.zeros(16, device=device)
    for count in _COUNTS:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                y.add_(1.0)

        def queued() -> None:
            for _ in range(count):  # noqa: B023 - called at once
                y.add_(1.0)

        yield Timing(Probe.DEVICE_KERNELS, count, _on_device(queued, repeats))
        yield Timing(Probe.GRAPH_KERNELS, count, _on_device(graph.replay, repeats))
        if count == _COUNTS[1]:  # about as many kernels as a step has
            yield from _replays(graph, device, repeats)


def _replays(graph: torch.cuda.CUDAGraph, device: torch.device, repeats: int) -> Iterator[Timing]:
    """What a graphed step costs the host: the inputs copied into their places, and a replay."""
    places = [torch.zeros(16, device=device) for _ in range(_INPUTS)]
    batch = [torch.ones(16, device=device) for _ in range(_INPUTS)]

    def steps(count: int) -> None:
        for _ in range(count):
            for place, given in zip(places, batch, strict=True):
                place.copy_(given)
            graph.replay()

    for count in _REPLAYS:
        seconds = _shortest(lambda: steps(count), device, repeats, wait=False)  # noqa: B023 - called at once
        yield Timing(Probe.GRAPH_REPLAYS, count, seconds)


def _work(device: torch.device, repeats: int, sizes: Iterable[int], l2_bytes: int) -> Iterator[Timing]:
    """Copies and matrix products large enough that nothing else counts."""
    for size in sizes:
        yield _copy(Probe.COPY, size, device, repeats)
    if l2_bytes:
        for size in (l2_bytes // 32, l2_bytes // 8):
            yield _copy(Probe.COPY_IN_CACHE, size, device, repeats)
    for n in (1024, 2048, 4096) if device.type == "cuda" else (256, 512, 1024):
        a, b = torch.ones(n, n, device=device), torch.ones(n, n, device=device)
        out = torch.empty_like(a)
        seconds = _shortest(lambda: torch.mm(a, b, out=out), device, repeats)  # noqa: B023 - called at once
        yield Timing(Probe.PRODUCT, 2.0 * n**3, seconds)


def _copy(probe: Probe, size: int, device: torch.device, repeats: int) -> Timing:
    source = torch.ones(size // 4, device=device)
    target: Tensor = torch.empty_like(source)
    seconds = _shortest(lambda: target.copy_(source), device, repeats)
    return Timing(probe, 2.0 * source.nbytes, seconds)


def _shortest(call: Callable[[], object], device: torch.device, repeats: int, *, wait: bool = True) -> float:
    """Seconds of a call after one that is not timed; ``wait``: until the device is done, on its own clock."""
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        if wait:
            return _on_device(call, repeats)
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return min(found)


def _on_device(call: Callable[[], object], repeats: int) -> float:
    """Seconds on the device's clock, the queue filled before it starts."""
    found: list[float] = []
    for _ in range(repeats):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        torch.cuda._sleep(_HEAD_START_CYCLES)  # type: ignore[no-untyped-call]
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(stop) / 1000)
    return min(found)
