"""What the sampler thread costs, as it reports it itself: its processor time over wall time, at its highest rate.

All gauges of a GPU are read, from the stand-in library of the tests: the cost of our own side, without the driver's.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import Samples
from tests.gpu.stand_in import StandIn, compile_into

RUNS = """
import time
from labkit.bench.observers.utilization_cpu import CpuReading
from labkit.bench.sampler_thread import SHORTEST_S, SamplerThread
from labkit.gpu.nvml import NvmlSession
from labkit.gpu.nvml_readings import GpuGauges

def overheads(read, runs, seconds):
    for _ in range(runs):
        sampler = SamplerThread(read, SHORTEST_S)
        sampler.start()
        time.sleep(seconds)
        sampler.stop()
        yield sampler.overhead().value

with NvmlSession() as session:
    gauges = GpuGauges(session, session.device(0))
    gauges.read()
    result = {{
        "gpu": list(overheads(gauges.read, {runs}, {seconds})),
        "cpu": list(overheads(CpuReading.now, {runs}, {seconds})),
    }}
    gauges.close()
"""


def run(quick: bool) -> Measurement:
    runs, seconds = (3, 0.5) if quick else (7, 2.0)
    with TemporaryDirectory() as folder:
        found = StandIn(compile_into(Path(folder))).run(RUNS.format(runs=runs, seconds=seconds))
    own, cpu = Samples(tuple(found["gpu"])), Samples(tuple(found["cpu"]))
    detail = (
        f"at 10 Hz, as the sampler reports it: {own.median:.2%} of one core for all "
        f"gauges of a GPU (stand-in library: without the driver's own time), {cpu.median:.2%} for the CPU share"
    )
    return Measurement("s", own, detail, ratio=own.median, reference=Samples((1.0,)))


BENCHMARK = Benchmark("sampler", "the sampler thread, of one core", Bar(0.02), run)
