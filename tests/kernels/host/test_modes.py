"""What the quick mode and the sanitizers see of the planted faults; on the right programs both are silent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from labkit.gpu.host.program import Program
from labkit.gpu.host.reports import HostRun, ReportKind
from labkit.gpu.host.toolchain import Mode
from tests.kernels.host.conftest import TEMPLATES, line_of

SOURCE = "programs.cu"
Built = Callable[..., Program]


def program_in(built: Built, mode: Mode) -> Program:
    return built(SOURCE, mode, *TEMPLATES)


def pass_through(program: Program, kernel: str, size: int = 100) -> tuple[HostRun, np.ndarray]:
    out, values = np.zeros(size, np.float32), np.arange(size, dtype=np.float32)
    return program.launch(kernel, (size // 32 + 1,), (32,), (out, values, np.int32(size))), out


@pytest.mark.parametrize("kernel", ["reads_one_beyond", "writes_one_beyond"])
def test_address_sanitizer_sees_one_element_beyond(built: Built, kernel: str) -> None:
    run, _ = pass_through(program_in(built, Mode.ASAN), kernel)
    (report,) = run.reports
    assert report.kind is ReportKind.ADDRESS
    assert (report.file, report.line) == (SOURCE, line_of(SOURCE, kernel, "out[i] ="))
    assert not run.completed


def test_address_sanitizer_sees_beyond_a_shared_array(built: Built) -> None:
    out = np.zeros(64, np.float32)
    run = program_in(built, Mode.ASAN).launch("shared_beyond", (1,), (32,), (out,))
    by_kind = {report.kind: report for report in run.reports}
    line = line_of(SOURCE, "shared_beyond", "tile[threadIdx.x + 1]")
    assert {report.line for report in run.reports} == {line}
    assert "insufficient space for an object of type 'float'" in by_kind[ReportKind.UNDEFINED].text
    assert "global-buffer-overflow" in by_kind[ReportKind.ADDRESS].text


def test_address_sanitizer_sees_beyond_dynamic_shared_memory(built: Built) -> None:
    program, out = program_in(built, Mode.ASAN), np.zeros(64, np.float32)
    assert program.launch("dynamic_shared", (1,), (32,), (out,), shared_bytes=128).reports == ()
    (report,) = program.launch("dynamic_shared", (1,), (32,), (out,), shared_bytes=124).reports
    assert "heap-buffer-overflow" in report.text


def test_undefined_behaviour_has_its_line_and_does_not_end_the_launch(built: Built) -> None:
    program, out = program_in(built, Mode.ASAN), np.zeros(64, np.float32)
    run = program.launch("vector_from", (1,), (1,), (out, np.arange(16, dtype=np.float32), np.int32(1)))
    assert {report.kind for report in run.reports} == {ReportKind.UNDEFINED}
    assert {report.line for report in run.reports} == {line_of(SOURCE, "vector_from", "float4 v =")}
    assert "misaligned address" in run.reports[0].text
    assert run.completed
    assert out[0] == 1 + 2 + 3 + 4


@pytest.mark.parametrize("mode", [Mode.FAST, Mode.ASAN])
@pytest.mark.parametrize(
    ("kernel", "threads"),
    [("barrier_there", 64), ("second_barrier_there", 64), ("warp_ordered", 32), ("halves_ordered_inside", 32)],
)
def test_the_right_programs_are_silent_and_right(built: Built, mode: Mode, kernel: str, threads: int) -> None:
    out = np.zeros(threads, np.float32)
    run = program_in(built, mode).launch(kernel, (1,), (threads,), (out,))
    assert run.reports == ()
    thread = np.arange(threads)
    wanted = {
        "barrier_there": thread[::-1],
        "second_barrier_there": thread[::-1] + 1,
        "warp_ordered": thread[::-1],
        "halves_ordered_inside": thread ^ 1,
    }
    np.testing.assert_array_equal(out, wanted[kernel])


@pytest.mark.parametrize("mode", list(Mode))
def test_the_right_bounds_are_silent(built: Built, mode: Mode) -> None:
    run, out = pass_through(program_in(built, mode), "reads_in_bounds")
    assert run.reports == ()
    np.testing.assert_array_equal(out, np.arange(100))


# --- the quick mode checks nothing but what shows by itself


def test_the_quick_mode_sees_a_write_just_behind_a_buffer(built: Built) -> None:
    run, _ = pass_through(program_in(built, Mode.FAST), "writes_one_beyond")
    assert [report.text for report in run.reports] == ["bytes just behind argument 0 (float*) were overwritten"]


def test_the_quick_mode_sees_a_wild_write_as_a_crash_of_the_launch_alone(built: Built) -> None:
    run = program_in(built, Mode.FAST).launch("writes_far_away", (1,), (1,), (np.zeros(4, np.float32),))
    (report,) = run.reports
    assert report.kind is ReportKind.CRASH
    assert "thread 0 of block 0 was ended by signal 11 (Segmentation fault)" in report.text
    assert not run.completed


def test_shared_memory_starts_as_nan_in_every_mode_and_block(built: Built) -> None:
    for mode in (Mode.FAST, Mode.ASAN):
        out = np.zeros(32, np.float32)
        run = program_in(built, mode).launch("reads_unwritten", (1,), (32,), (out,))
        assert run.reports == ()
        np.testing.assert_array_equal(out, np.where(np.arange(32) == 7, np.nan, 1))


@pytest.mark.parametrize("mode", list(Mode))
def test_variables_of_the_module_are_kept_between_launches(built: Built, mode: Mode) -> None:
    program, out = program_in(built, mode), np.zeros(5, np.float32)
    kept: dict[str, bytes] = {}
    for call in range(3):
        assert program.launch("counts_its_calls", (1,), (4,), (out,), kept=kept).reports == ()
        np.testing.assert_array_equal(out, np.array([40, 2, 3, 4, 5]) + call)
    assert program.launch("counts_its_calls", (1,), (4,), (out,)).reports == ()
    np.testing.assert_array_equal(out, [40, 2, 3, 4, 5])  # alone: as the source says
