"""Utilization of a run: means over time, SM-active and time-active kept apart, border samples in their place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.bench.observers.utilization import NoUtilization, Utilization, utilization
from labkit.bench.observers.utilization_cpu import CpuReading, available_cores, cpu_summary
from labkit.bench.observers.utilization_gpu import GPU_FIGURES, gpu_summary
from labkit.bench.sampler_thread import SamplerThread
from labkit.gpu.nvml_answers import Answer
from labkit.gpu.nvml_readings import GpuReading
from labkit.provenance import Figure, Origin
from tests.gpu.stand_in import StandIn, compile_into

GAUGES = GPU_FIGURES | {
    "device_used_bytes": "bytes",
    "device_free_bytes": "bytes",
    "device_total_bytes": "bytes",
    "temperature_c": "°C",
}


def reading(at_s: float, throttle: tuple[str, ...] | None = (), **values: float) -> GpuReading:
    """A reading in which all that is not given is missing because of "absent"."""

    def gauge(name: str) -> Figure:
        value = values.get(name)
        return Figure(
            value, GAUGES[name], None if value is None else Origin.MEASURED, "absent" if value is None else None
        )

    names = [name for name in GpuReading.__dataclass_fields__ if name not in {"at_s", "throttle"}]
    answer = Answer(throttle, None if throttle is not None else "no permission to read it")
    return GpuReading(at_s=at_s, throttle=answer, **{name: gauge(name) for name in names})


# --- GPU


def test_sm_active_is_the_mean_over_time_after_the_border() -> None:
    # 0.9 was before the run; then 0.2 for one second and 0.6 for three: (0.2 + 1.8) / 4 = 0.5
    samples = [reading(0, sm_active=0.9), reading(1, sm_active=0.2), reading(4, sm_active=0.6)]
    found = gpu_summary(samples, None)
    assert found["utilization"].value == pytest.approx(0.5)
    assert found["utilization"].reason == "SM-active; mean of 2 samples"
    assert found["utilization_max"].value == 0.6
    assert found["time_active"] == Figure(None, "1", None, "absent")


def test_a_reading_after_a_gap_stands_for_the_gap_too() -> None:
    # the metrics count since the last sample that they had: 0.8 stands for two seconds, (0.2 + 1.6) / 3 = 0.6
    samples = [reading(0), reading(1, sm_active=0.2), reading(2), reading(3, sm_active=0.8)]
    assert gpu_summary(samples, None)["sm_active"].value == pytest.approx(0.6)


def test_without_gpm_it_is_time_active_and_says_so() -> None:
    found = gpu_summary(
        [reading(0, time_active=1), reading(1, time_active=0.7)], "no GPM: this GPU is older than Hopper"
    )
    assert found["utilization"].value == 0.7
    assert found["utilization"].reason == "time-active; no GPM: this GPU is older than Hopper; mean of 1 samples"
    assert found["sm_active"].value is None


def test_a_gpm_that_fails_is_not_replaced_by_time_active() -> None:
    found = gpu_summary([reading(0), reading(1, time_active=0.7)], None)
    assert found["utilization"] == Figure(None, "1", None, "absent")


def test_energy_is_the_difference_of_the_counter() -> None:
    assert (
        gpu_summary([reading(0, energy_j=100.0), reading(1), reading(2, energy_j=103.5)], None)["energy_j"].value == 3.5
    )
    assert gpu_summary([reading(0, energy_j=100.0), reading(1)], None)["energy_j"] == Figure(None, "J", None, "absent")


def test_clocks_held_down() -> None:
    samples = [
        reading(0, ("hardware slowdown",)),  # before the run
        reading(1, ("idle",)),
        reading(2, ("software power cap",)),
        reading(3, ("software power cap", "application clocks")),
        reading(4, None),
    ]
    found = gpu_summary(samples, None)["throttled_share"]
    assert found.value == 2 / 3
    assert found.reason == "clocks held down: software power cap in 2 of 3 samples"
    assert gpu_summary([reading(0), reading(1, None)], None)["throttled_share"].reason == "no permission to read it"


def test_every_figure_is_there_whatever_is_missing() -> None:
    for samples in ([], [reading(0)], [reading(0), reading(1)]):
        found = gpu_summary(samples, None)
        assert {name: figure.unit for name, figure in found.items()} == GPU_FIGURES
    assert {name: f.unit for name, f in NoUtilization("no driver").figures().items()} == GPU_FIGURES


# --- CPU


def test_the_cpu_share_is_processor_time_over_wall_time_and_cores() -> None:
    # 1 s of processor time in the first second, 3 in the next two: 4 / (3 s x 2 cores)
    found = cpu_summary([CpuReading(0, 5), CpuReading(1, 6), CpuReading(3, 9)], cores=2)
    assert found["utilization"].value == pytest.approx(4 / 6)
    assert found["utilization_max"].value == pytest.approx(3 / 4)
    assert found["utilization"].reason == (
        "CPU share: processor time of this process, not its children's, over wall time x 2 cores"
    )


def test_a_very_short_interval_is_no_maximum() -> None:
    found = cpu_summary([CpuReading(0, 0), CpuReading(1, 1), CpuReading(1.01, 1.09)], cores=1)
    assert found["utilization_max"].value == 1


def test_a_run_without_samples_has_no_cpu_share() -> None:
    assert cpu_summary([CpuReading(0, 0)], cores=1)["utilization"].value is None


@pytest.mark.parametrize(("text", "most"), [("150000 100000\n", 1.5), ("50000 100000\n", 0.5)])
def test_cores_are_no_more_than_the_control_group_has(tmp_path: Path, text: str, most: float) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert available_cores(quota) == min(most, available_cores(tmp_path / "absent"))
    quota.write_text("max 100000\n")
    assert available_cores(quota) == available_cores(tmp_path / "absent") >= 1


# --- the observer


@pytest.fixture
def numbers() -> Callable[[], int]:
    return iter(range(1, 100)).__next__


def test_a_run_has_its_own_sampler(numbers: Callable[[], int]) -> None:
    seen: list[list[int]] = []
    sampler = SamplerThread(numbers, 0.5)
    observer = Utilization(sampler, lambda samples: seen.append(list(samples)) or {})  # type: ignore[func-returns-value]
    observer.before_run()
    observer.after_run()
    assert not sampler.running
    found = observer.figures()
    assert seen == [[1, 2]]
    assert found["sampler_n"].value == 1
    assert found["sampler_interval_s"].value == 0.5
    assert found["sampler_overhead"].origin is Origin.MEASURED


def test_a_sampler_that_runs_is_shared_and_left_running(numbers: Callable[[], int]) -> None:
    seen: list[list[int]] = []
    sampler = SamplerThread(numbers, 0.5)
    strip = sampler.subscribe(most=1)
    sampler.start()
    observer = Utilization(sampler, lambda samples: seen.append(list(samples)) or {})  # type: ignore[func-returns-value]
    observer.before_run()
    observer.after_run()
    observer.figures()
    assert seen == [[2, 3]]  # the borders of the run: 1 was before
    assert strip.take() == [3]
    assert sampler.running
    sampler.stop()


def test_on_a_cpu_it_is_the_share_of_the_cores() -> None:
    with utilization() as observer:
        observer.before_run()
        sum(range(100_000))
        observer.after_run()
        found = observer.figures()
    assert found["utilization"].origin is Origin.MEASURED
    assert (found["utilization"].reason or "").startswith("CPU share")


def test_the_sampler_ends_with_a_run_that_raises() -> None:
    def run() -> None:
        with utilization() as observer:
            observer.before_run()
            raise MemoryError

    with pytest.raises(MemoryError):
        run()
    assert "labkit-sampler" not in {thread.name for thread in threading.enumerate()}


RUN = """
from labkit.bench.observers.utilization import utilization
import time
with utilization({index}, 0.1) as observer:
    observer.before_run()
    time.sleep(0.35)
    observer.after_run()
    result = {{name: [f.value, f.reason] for name, f in observer.figures().items()}}
"""


def test_on_a_gpu_it_is_sm_active(tmp_path: Path) -> None:
    stand_in = StandIn(compile_into(tmp_path))
    found = stand_in.run(RUN.format(index=0))
    assert found["utilization"][0] == pytest.approx(0.625)
    assert found["utilization"][1].startswith("SM-active; mean of ")
    assert found["energy_j"][0] == found["sampler_n"][0] * 0.5  # half a joule a reading
    found = stand_in.run(RUN.format(index=0), "no_gpm")
    assert found["utilization"][0] == pytest.approx(0.9)
    assert found["utilization"][1].startswith("time-active; no GPM: this GPU is older than Hopper")
    found = stand_in.run(RUN.format(index=0), "lost=20")
    assert found["energy_j"][0] is None
    assert "the GPU is lost" in found["energy_j"][1]
    assert found["sampler_n"][0] >= 2  # sampling went on


@pytest.mark.parametrize(
    ("scenario", "index", "reason"),
    [("no_driver", 0, "NVML cannot be opened: the NVIDIA driver is not loaded"), ("", 3, "there is no device cuda:3")],
)
def test_where_nothing_can_be_read_there_is_a_reason(tmp_path: Path, scenario: str, index: int, reason: str) -> None:
    found = StandIn(compile_into(tmp_path)).run(RUN.format(index=index), scenario)
    assert found["utilization"][0] is None
    assert found["utilization"][1].startswith(reason)
