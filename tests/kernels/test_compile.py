"""NVRTC without a GPU: CuPy's own options, every architecture, one clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labkit.errors import KernelCompileError, MissingPackageError
from labkit.experiments.doctor import diagnose
from labkit.gpu import nvrtc
from labkit.gpu.nvrtc import ARCHES, compile_source, cupy_options
from labkit.gpu.sources import kernel_text

DOUBLE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= FACTOR; }\n'
SCALE = "template <int N> __global__ void scale(float* x) { x[threadIdx.x] *= N; }\n"


@pytest.mark.parametrize("arch", ARCHES)
def test_a_source_becomes_a_binary_and_ptx_of_each_architecture(arch: int) -> None:
    compiled = compile_source(DOUBLE, "twice.cu", arch=arch, options=["-DFACTOR=2.f"])
    assert compiled.cubin[:4] == b"\x7fELF"
    assert f".target sm_{arch}" in compiled.ptx
    assert f"for 'sm_{arch}'" in compiled.log


def test_the_binary_is_whole() -> None:
    # the section table is the end of a cubin or before it: an ELF file that ends too early is refused by the driver
    cubin = compile_source(DOUBLE, "twice.cu", options=["-DFACTOR=2.f"]).cubin
    table, size, count = (int.from_bytes(cubin[a:b], "little") for a, b in ((0x28, 0x30), (0x3A, 0x3C), (0x3C, 0x3E)))
    programs, size_p, count_p = (
        int.from_bytes(cubin[a:b], "little") for a, b in ((0x20, 0x28), (0x36, 0x38), (0x38, 0x3A))
    )
    assert len(cubin) == max(table + size * count, programs + size_p * count_p)


def test_name_expressions_give_the_mangled_names_and_their_code() -> None:
    compiled = compile_source(SCALE, "scale.cu", name_expressions=["scale<3>", "scale<5>"])
    assert compiled.names == {"scale<3>": "_Z5scaleILi3EEvPf", "scale<5>": "_Z5scaleILi5EEvPf"}
    assert compiled.ptx.count(".entry _Z5scaleILi") == 2


def test_macros_reach_the_source() -> None:
    three = compile_source(DOUBLE, "twice.cu", options=["-DFACTOR=3.f"]).ptx
    assert "0f40400000" in three  # 3.0f
    assert "0f40400000" not in compile_source(DOUBLE, "twice.cu", options=["-DFACTOR=5.f"]).ptx


def test_the_ptx_names_lines_of_the_file_as_it_is() -> None:
    ptx = compile_source("\n\n" + DOUBLE, "twice.cu", options=["-DFACTOR=2.f"]).ptx
    assert ".loc\t1 3 " in ptx
    assert 'twice.cu"' in ptx


def test_the_options_are_those_that_cupy_itself_hands_to_nvrtc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CuPy's own way from a source to NVRTC, entered just below the point where it asks for the device."""
    from cupy._core import core
    from cupy.cuda import compiler

    seen: list[tuple[str, ...]] = []

    class CaughtError(Exception):
        pass

    def without_a_device(source: str, options: tuple[str, ...] = (), **keywords: Any) -> None:
        arch = keywords["arch"]
        monkeypatch.setattr(compiler, "_preprocess", lambda *a: "")
        monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda arch: (f"-arch=sm_{arch}", "cubin"))
        monkeypatch.setattr(compiler, "_kernel_cache_backend", type("None_", (), {"load": lambda self, name: None})())
        monkeypatch.setattr(compiler.function, "Module", lambda: None)
        compiler._compile_with_cache_cuda(source, options, arch, "")

    def caught(program: object, options: tuple[str, ...]) -> None:
        seen.append(tuple(options))
        raise CaughtError

    monkeypatch.setattr(compiler, "_compile_module_with_cache", without_a_device)
    monkeypatch.setattr(compiler.nvrtc, "compileProgram", caught)
    with pytest.raises(CaughtError):
        core.compile_with_cache(DOUBLE, ("-DFACTOR=2.f",), arch="90", prepend_cupy_headers=False)
    monkeypatch.undo()
    assert seen == [cupy_options(["-DFACTOR=2.f"], 90)]
    assert "-ftz=true" in seen[0]


def test_an_error_names_file_line_and_number_of_errors() -> None:
    source = '\n\nextern "C" __global__ void f() { y = 3;\nz = 2; }\n'
    with pytest.raises(
        KernelCompileError,
        match=r'^bad\.cu does not compile for sm_80: 2 errors, first bad\.cu:3: identifier "y" is undefined$',
    ) as caught:
        compile_source(source, "bad.cu", arch=80)
    assert 'bad.cu(4): error: identifier "z" is undefined' in caught.value.log


def test_a_name_expression_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KernelCompileError, match="first a name expression: cannot determine which instance"):
        compile_source(SCALE, "scale.cu", name_expressions=["scale<float>"])


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(KernelCompileError, match="--no-such-option"):
        compile_source(DOUBLE, "twice.cu", options=["-DFACTOR=2.f", "--no-such-option"])


def test_without_cupy_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc._found_binding.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy.cuda", None)
    with pytest.raises(MissingPackageError, match=r"CuPy.*pip install 'labkit\[gpu\]'"):
        compile_source(DOUBLE, "twice.cu")


def test_without_the_headers_of_cuda_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy._core import core

    def absent(_: tuple[str, ...]) -> tuple[str, ...]:
        raise RuntimeError("Failed to find CUDA headers.")

    monkeypatch.setattr(core, "assemble_cupy_compiler_options", absent)
    message = r"CUDA's headers \(Failed to find CUDA headers\.\): pip install 'labkit\[gpu\]'"
    with pytest.raises(MissingPackageError, match=message):
        cupy_options((), 90)
    check = next(check for check in diagnose() if check.name == "kernels: code")
    assert not check.ok
    assert "Failed to find CUDA headers" in str(check.reason)


def test_without_the_library_of_nvrtc_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import nvrtc as binding

    def missing() -> None:
        raise RuntimeError("Failure finding libnvrtc.so\nand much more")

    nvrtc._found_binding.cache_clear()
    monkeypatch.setattr(binding, "getVersion", missing)
    with pytest.raises(MissingPackageError, match=r"\(Failure finding libnvrtc\.so\): pip install 'labkit\[gpu\]'"):
        compile_source(DOUBLE, "twice.cu")


def test_half_precision_compiles_where_the_headers_are_and_names_their_package_where_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = (
        '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half* x, float* y) { y[0] = __half2float(x[0]); }\n'
    )
    # no toolkit on this machine's path and no wheel: as on a machine without CUDA
    monkeypatch.setattr(nvrtc, "fp16_headers", lambda: None)
    monkeypatch.setattr(nvrtc, "cupy_options", lambda options, arch: ("-std=c++17", f"-arch=sm_{arch}", *options))
    with pytest.raises(KernelCompileError, match=r"cuda_fp16\.h.*pip install 'nvidia-cuda-runtime==13\.0\.\*'"):
        compile_source(source, "half.cu")


def test_a_header_without_a_last_newline_leaves_the_next_line_alone(tmp_path: Path) -> None:
    (tmp_path / "two.cuh").write_text("#define FACTOR 2")
    (tmp_path / "twice.cu").write_text(f'#include "two.cuh"\n{DOUBLE}')
    text = kernel_text(tmp_path / "twice.cu")
    assert text == f'#line 1 "twice.cu"\n#line 1 "two.cuh"\n#define FACTOR 2\n#line 2 "twice.cu"\n{DOUBLE}'
    compile_source(text, "twice.cu")


def test_the_first_compilations_of_a_process_may_come_at_once() -> None:
    """NVRTC alone fails at that: "failed to open libnvrtc-builtins.so"."""
    program = (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from labkit.gpu.nvrtc import ARCHES, compile_source\n"
        f"compiled = Pool(5).map(lambda arch: compile_source({SCALE!r}, 'scale.cu', arch=arch).arch, ARCHES)\n"
        "assert tuple(compiled) == ARCHES\n"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
