"""Resources of the kernels: the committed table is what the compiler says, and nothing lies in local memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labkit.errors import KernelCompileError, KernelLaunchError
from labkit.gpu import resources
from labkit.gpu.catalog import KERNELS
from labkit.gpu.nvrtc import ARCHES, Compiled, compile_source
from labkit.gpu.occupancy import Occupancy, occupancy
from labkit.gpu.resources import as_text, compiler_name, complaints, main, resources_of, rows_of, table_path

SHARED = """extern "C" __global__ void __launch_bounds__(128) reversed(float* x) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[127 - threadIdx.x];
}
"""
LOCAL = """extern "C" __global__ void local(float* x, int n) {
  float a[300];
  for (int i = 0; i < n; ++i) a[i] = x[i];
  float s = 0;
  for (int j = n; j-- > 0;) s = s * a[j] + a[j * 7 % n];
  x[0] = s;
}
"""


def test_the_report_of_the_assembler_is_read() -> None:
    found = resources_of(compile_source(SHARED, "reversed.cu"))["reversed"]
    assert (found.shared_bytes, found.stack_bytes, found.spill_bytes, found.threads) == (512, 0, 0, 128)
    assert 8 <= found.registers <= 32
    assert (found.occupancy, found.limit) == (1.0, "warps")


def test_an_array_with_computed_indices_is_found_in_local_memory_and_named() -> None:
    found = resources_of(compile_source(LOCAL, "local.cu"))["local"]
    assert found.stack_bytes == 1200
    row = {"kernel": "local", "options": ["-DA=1"], "arch": 90} | found.as_json
    assert complaints([row]) == ["local -DA=1 on sm_90: 0 bytes spilled, 1200 bytes of local memory"]


def test_spills_are_found() -> None:
    # 64 values live across a barrier in a block of 1024 threads: 65536 / 2048 leaves 32 registers a thread
    source = """extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* x) {
      float a[64];
      for (int i = 0; i < 64; ++i) a[i] = x[i * 1024 + threadIdx.x];
      __syncthreads();
      for (int i = 0; i < 64; ++i) x[i * 1024 + threadIdx.x] = a[63 - i];
    }"""
    found = resources_of(compile_source(source, "spills.cu"))["spills"]
    assert found.spill_bytes > 0
    assert found.registers <= 32


def test_a_report_that_is_not_understood_is_an_error() -> None:
    log = "ptxas info    : Compiling entry function 'f' for 'sm_90'\nptxas info    : Used many registers"
    with pytest.raises(KernelCompileError, match="the report of ptxas on f is not understood"):
        resources_of(Compiled(90, b"", "", {}, log))


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limit"),
    [
        # 64 warps: 8 of a block of 256; 32 registers a thread are 1024 a warp, 64 warps fill 65536
        (90, 256, 32, 0, 8, "warps"),
        # 40 registers: 1280 a warp, 12 in a quarter (16384 / 1280 = 12.8), 48 in all, 6 blocks
        (90, 256, 40, 4096, 6, "registers"),
        # 41 registers round up to 1536 a warp: 10 in a quarter, 40 in all
        (90, 256, 41, 0, 5, "registers"),
        # 32 threads: 32 blocks is the limit
        (90, 32, 16, 0, 32, "blocks"),
        # 20000 + 1024 reserved, in steps of 128: 21120; 233472 / 21120 = 11.05
        (90, 32, 16, 20_000, 11, "shared memory"),
        (75, 256, 32, 0, 4, "warps"),
        # Turing reserves nothing: 65536 / 20224 (steps of 256) = 3.2
        (75, 32, 16, 20_000, 3, "shared memory"),
        (120, 1024, 40, 0, 1, "warps"),
        (120, 256, 64, 0, 4, "registers"),
    ],
)
def test_occupancy_is_that_of_nvidias_calculator(
    arch: int, threads: int, registers: int, shared: int, blocks: int, limit: str
) -> None:
    # the numbers of blocks were also computed by cudaOccMaxActiveBlocksPerMultiprocessor of CUDA 13.0
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * -(-threads // 32)


def test_occupancy_is_a_share_of_all_warps() -> None:
    assert occupancy(90, 256, 40, 4096) == Occupancy(blocks=6, warps=48, share=0.75, limit="registers")


def test_a_block_that_fits_nowhere_and_an_unknown_architecture_are_refused() -> None:
    with pytest.raises(KernelLaunchError, match="does not fit on a multiprocessor of sm_75"):
        occupancy(75, 256, 32, 65 << 10)
    with pytest.raises(KernelLaunchError, match="does not fit"):
        occupancy(90, 1024, 255, 0)
    with pytest.raises(KernelLaunchError, match=r"limits of sm_35 are not known: expected one of \[75, 80"):
        occupancy(35, 256, 32, 0)


# --- the committed table


def committed() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(table_path().read_text())
    return content


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("op", KERNELS)
def test_the_committed_table_is_what_the_compiler_says(op: str, arch: int) -> None:
    rows = rows_of(KERNELS[op], arch)
    assert complaints(rows) == []
    assert rows, "a file without kernels"
    expected = [row for row in committed()["rows"] if (row["op"], row["arch"]) == (op, arch)]
    assert expected == rows, "run: python -m labkit.gpu.resources --write"


def test_the_table_holds_the_kernels_of_the_catalog_and_no_others() -> None:
    keys = [(row["op"], row["kernel"], tuple(row["options"]), row["arch"]) for row in committed()["rows"]]
    expected = [
        (source.op, expression, options, arch)
        for source in KERNELS.values()
        for expression in source.name_expressions
        for options in source.option_sets
        for arch in ARCHES
    ]
    assert sorted(keys) == sorted(expected)
    assert committed()["compiler"] == compiler_name()
    assert as_text(committed()["rows"], committed()["compiler"]) == table_path().read_text()


def test_the_command_writes_what_it_then_finds_up_to_date(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"op": "a", "kernel": "a<1>", "options": [], "arch": 90, "spill_bytes": 0, "stack_bytes": 0}
    monkeypatch.setattr(resources, "table", lambda: [row])
    monkeypatch.setattr(resources, "table_path", lambda: tmp_path / "resources.json")
    assert main([]) == 1
    assert "is out of date; run: python -m labkit.gpu.resources --write" in capsys.readouterr().err
    assert main(["--write"]) == 0
    assert main([]) == 0
    monkeypatch.setattr(resources, "table", lambda: [row | {"spill_bytes": 8}])
    assert main(["--write"]) == 1
    assert capsys.readouterr().err == "a<1> on sm_90: 8 bytes spilled, 0 bytes of local memory\n"
