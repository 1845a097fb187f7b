"""What a launch would read wrongly is refused before it, with the argument, what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from labkit.errors import KernelArgumentError, KernelLaunchError
from labkit.gpu.host.buffers import SparseBuffer
from labkit.gpu.host.program import Program
from labkit.gpu.host.toolchain import Mode
from tests.kernels.host.conftest import TEMPLATES

Built = Callable[..., Program]


@pytest.fixture(scope="module")
def program(built: Built) -> Program:
    return built("programs.cu", Mode.CHECKED, *TEMPLATES)


OUT, IN, N = np.zeros(8, np.float32), np.zeros(8, np.float32), np.int32(8)
READ_ONLY = np.zeros(8, np.float32)
READ_ONLY.flags.writeable = False

REFUSED = {
    "float64 for float*": ((OUT, np.zeros(8), N), "argument 1 of reads_in_bounds is const float*: expected an array"),
    "float64 for the output": ((np.zeros(8), IN, N), "argument 0 of reads_in_bounds is float*: expected an array of"),
    "a Python int": ((OUT, IN, 8), "is int: expected numpy.int32, got int; wrap it, as in np.int32(...)"),
    "int64 for int": ((OUT, IN, np.int64(8)), "expected numpy.int32, got numpy.int64"),
    "a Python bool": ((OUT, IN, True), "expected numpy.int32, got bool"),
    "an array for int": ((OUT, IN, np.zeros(1, np.int32)), "expected numpy.int32, got ndarray"),
    "a scalar for float*": ((OUT, np.float32(1), N), "expected an array of float32, got float32"),
    "strides": ((OUT, np.zeros((8, 2), np.float32)[:, 0], N), "expected a C-contiguous array, got strides (8,)"),
    "Fortran order": ((OUT, np.zeros((4, 2), np.float32, order="F"), N), "expected a C-contiguous array"),
    "byte order": ((OUT, np.zeros(8, ">f4"), N), "expected an array of float32, got >f4"),
    "read-only output": ((READ_ONLY, IN, N), "expected an array that can be written"),
    "a list": ((OUT, [1.0] * 8, N), "expected an array of float32, got list"),
    "None for int": ((OUT, IN, None), "expected numpy.int32, got NoneType"),
    "too few": ((OUT, IN), "takes 3 arguments (float*, const float*, int), got 2"),
    "too many": ((OUT, IN, N, N), "takes 3 arguments (float*, const float*, int), got 4"),
    "input is output": ((OUT, OUT, N), "arguments 0 and 1 of reads_in_bounds share memory, and one of them is written"),
    "input overlaps output": ((OUT[:4], OUT[3:], N), "share memory"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_an_argument_that_does_not_fit_is_a_type_error(program: Program, arguments: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        program.launch("reads_in_bounds", (1,), (32,), arguments)
    assert isinstance(caught.value, KernelArgumentError)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_vector_pointer_takes_whole_vectors(built: Built) -> None:
    program = built("patterns.cu", Mode.CHECKED, "banks<float>", "banks<float2>", "banks<float4>")
    with pytest.raises(KernelArgumentError, match=r"const float4\*: expected a multiple of 4 elements, got 6"):
        program.launch("vectors", (1,), (1,), (np.zeros(8, np.float32), np.zeros(6, np.float32)))


@pytest.mark.parametrize(
    ("grid", "block", "shared_bytes", "message"),
    [
        ((0,), (32,), 0, r"a grid has 1 to 3 sizes from 1 to \(2147483647, 65535, 65535\), got \(0,\)"),
        ((1, 70_000), (32,), 0, r"a grid has .* got \(1, 70000\)"),
        ((1, 1, 65_536), (32,), 0, "a grid has"),
        ((2**31,), (32,), 0, "a grid has"),
        ((1,), (1025,), 0, "a block has 1 to 3 sizes"),
        ((1,), (1, 1, 65), 0, "a block has 1 to 3 sizes"),
        ((1,), (64, 32), 0, "a block has at most 1024 threads, got 2048"),
        ((1,), (), 0, "a block has 1 to 3 sizes"),
        ((1,), (32,), 227 * 1024 + 1, "a block has at most 232448 bytes of shared memory, got 232449"),
        ((1,), (32,), -1, "a block has at most"),
    ],
)
def test_a_launch_that_no_device_accepts(
    program: Program, grid: tuple[int, ...], block: tuple[int, ...], shared_bytes: int, message: str
) -> None:
    with pytest.raises(KernelLaunchError, match=message):
        program.launch("reads_in_bounds", grid, block, (OUT, IN, N), shared_bytes=shared_bytes)


def test_many_rows_go_along_x(built: Built) -> None:
    program = built("language.cu", Mode.FAST, "atomics<int>", "atomics<unsigned>")
    out = np.zeros(70_000, np.int32)
    assert program.launch("indices", (70_000,), (1,), (out,)).clean
    np.testing.assert_array_equal(out, 1000 * np.arange(70_000))


def test_static_shared_memory_counts(program: Program) -> None:
    out = np.zeros(64, np.float32)
    with pytest.raises(KernelLaunchError, match="got 232448 dynamic ones and 256 of the source"):
        program.launch("barrier_there", (1,), (64,), (out,), shared_bytes=227 * 1024)


def test_a_kernel_that_was_not_built(program: Program) -> None:
    with pytest.raises(KernelLaunchError, match=r"programs.cu has no kernel 'missing': built are barrier_missing, "):
        program.launch("missing", (1,), (1,), ())


def test_results_come_back_and_inputs_stay(program: Program) -> None:
    out, values = np.zeros(8, np.float32), np.arange(8, dtype=np.float32)
    program.launch("reads_in_bounds", (1,), (32,), (out, values, np.int32(5)))
    np.testing.assert_array_equal(out, [0, 1, 2, 3, 4, 0, 0, 0])
    np.testing.assert_array_equal(values, np.arange(8))


def test_a_view_into_a_larger_array_is_written_in_place(program: Program) -> None:
    table = np.zeros((3, 8), np.float32)
    program.launch("reads_in_bounds", (1,), (32,), (table[1], np.ones(8, np.float32), N))
    np.testing.assert_array_equal(table.sum(axis=1), [0, 8, 0])


@pytest.mark.parametrize("mode", list(Mode))
def test_an_index_above_2_to_31_on_a_buffer_that_is_mostly_hole(built: Built, mode: Mode) -> None:
    program = built("programs.cu", mode, *TEMPLATES)
    rows, width = 2**16 + 1, 2**15  # the last row starts at 2^31
    out = np.zeros(32, np.float32)
    with SparseBuffer((rows, width), np.float32) as values:
        values.array[-1, :32] = np.arange(32)
        sizes = (np.int32(rows), np.int32(width))
        assert program.launch("index_in_long", (1,), (32,), (out, values, *sizes)).reports == ()
        np.testing.assert_array_equal(out, np.arange(32))
        wrong = program.launch("index_in_int", (1,), (32,), (out, values, *sizes))
    kinds = {report.kind.value for report in wrong.reports}
    expected = {Mode.FAST: {"crash"}, Mode.CHECKED: {"out_of_bounds"}, Mode.ASAN: {"undefined", "address"}}
    assert kinds == expected[mode]


def test_a_sparse_buffer_is_written_in_place(program: Program) -> None:
    with SparseBuffer(8, np.float32) as out:
        assert out.array.tolist() == [0.0] * 8
        program.launch("reads_in_bounds", (1,), (32,), (out, np.ones(8, np.float32), N))
        assert out.array.tolist() == [1.0] * 8


def test_a_sparse_buffer_holds_numbers() -> None:
    with pytest.raises(KernelArgumentError, match="a sparse buffer holds numbers, got dtype object"):
        SparseBuffer(4, object)
