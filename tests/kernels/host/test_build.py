"""What NVRTC refuses is refused here too, with file and line; a program is built once for all that it depends on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labkit.errors import DataFileError, KernelCompileError, MissingPackageError
from labkit.gpu.host import build as build_module
from labkit.gpu.host import toolchain
from labkit.gpu.host.build import build, cache_folder
from labkit.gpu.host.program import Program
from labkit.gpu.host.toolchain import Mode

Built = Callable[..., Program]
HEAD = 'extern "C" __global__ void kernel(float* out) {\n'


@pytest.mark.parametrize(
    "line",
    [
        "out[0] = INFINITY;",
        "out[0] = NAN;",
        "int64_t n = 0; out[0] = n;",
        "out[0] = std::max(1, 2);",
        "out[0] = FLT_MAX;",
        "out[0] = max(1, 2ll);",  # CUDA has no overload for int and long long
        "out[0] = __activemask();",
        "missing();",
    ],
)
def test_what_nvrtc_lacks_does_not_compile(tmp_path: Path, line: str) -> None:
    with pytest.raises(KernelCompileError, match=r"the CPU build of a kernel failed: wrong.cu:2: ") as caught:
        build(Path("wrong.cu"), ["kernel"], source=f"{HEAD}  {line}\n}}\n", cache=tmp_path)
    assert "\n" not in str(caught.value)
    assert "wrong.cu:2:" in caught.value.log
    assert list(tmp_path.glob("building-*")) == []


def test_a_brace_that_is_never_closed_is_named_where_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(KernelCompileError, match=r"failed: open.cu:1: this '\{' is never closed$"):
        build(Path("open.cu"), ["kernel"], source=f"{HEAD}  out[0] = 1;\n", cache=tmp_path)


def test_a_name_expression_of_no_kernel(tmp_path: Path) -> None:
    with pytest.raises(KernelCompileError, match="absent"):
        build(Path("k.cu"), ["absent<float>"], source=HEAD + "}\n", cache=tmp_path)


def test_a_source_that_is_missing() -> None:
    with pytest.raises(DataFileError, match=r"cannot read the kernel source nowhere.cu"):
        build(Path("nowhere.cu"), ["kernel"])


def test_dynamic_shared_memory_in_another_form_is_refused(tmp_path: Path) -> None:
    source = HEAD + "  extern __shared__ float tile[8];\n}\n"
    with pytest.raises(KernelCompileError, match=r"k.cu: dynamic shared memory must be declared as"):
        build(Path("k.cu"), ["kernel"], source=source, cache=tmp_path)


def test_options_are_macros_and_headers_beside_the_source_are_found(tmp_path: Path) -> None:
    (tmp_path / "half.cuh").write_text("__device__ __forceinline__ float half_of(float x) { return x / 2; }\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "half.cuh"\n' + HEAD + "  out[0] = half_of(VALUE);\n}\n")
    for value in (3, 5):
        out = np.zeros(1, np.float32)
        program = build(path, ["kernel"], options=(f"-DVALUE={value}",), cache=tmp_path)
        assert program.launch("kernel", (1,), (1,), (out,)).clean
        assert out[0] == value / 2


def test_a_program_is_built_once_for_the_same_source_names_options_and_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    run = build_module._run
    monkeypatch.setattr(build_module, "_run", lambda command: (commands.append(command), run(command))[1])
    source = HEAD + "  out[0] = 1;\n}\n"

    def path_of(**changes: object) -> Path:
        arguments = {"mode": Mode.FAST, "source": source, "cache": tmp_path, "options": (), **changes}
        return build(Path("k.cu"), ["kernel"], **arguments).path  # type: ignore[arg-type]

    first = path_of()
    built = len(commands)
    assert path_of() == first
    assert len(commands) == built > 0
    others = {path_of(source=source.replace("1", "2")), path_of(options=("-DX",)), path_of(mode=Mode.CHECKED)}
    assert len(others | {first}) == 4


def test_the_cache_forgets_the_program_that_was_used_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "MOST_PROGRAMS", 2)

    def program_for(value: int) -> Path:
        path = build(Path("k.cu"), ["kernel"], source=f"{HEAD}  out[0] = {value};\n}}\n", cache=tmp_path).path
        os.utime(path.parent / "program.json", (value, value))
        return path

    first, second = program_for(1), program_for(2)
    os.utime(first.parent / "program.json", (3, 3))  # used again, after the second
    third = program_for(4)
    assert [path.exists() for path in (first, second, third)] == [True, False, True]


def test_parameters_are_those_of_the_source(built: Built) -> None:
    program = built("language.cu", Mode.FAST, "atomics<int>", "atomics<unsigned>")
    spelled = {name: [entry.spelling for entry in parameters] for name, parameters in program.kernels.items()}
    assert spelled["vectors"] == ["float4*", "const float4*", "const int2*"]
    assert spelled["wide_shuffles"] == ["double*", "long long int*"]
    assert spelled["atomics<unsigned>"] == ["unsigned int*", "unsigned int*", "unsigned int"]
    assert spelled["halves"] == ["short unsigned int*", "const f16*", "const bf16*"]


def test_shared_variables_are_known_by_kernel(built: Built) -> None:
    program = built("patterns.cu", Mode.CHECKED, "banks<float>", "banks<float2>", "banks<float4>")
    found = {entry.kernel: (entry.name, entry.bytes) for entry in program.variables if entry.shared}
    assert found == {"banks<float>": ("tile", 4224), "banks<float2>": ("tile", 8448), "banks<float4>": ("tile", 16896)}


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path / "host"
    monkeypatch.delenv("LABKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "labkit" / "host"


@pytest.fixture
def forgotten_compiler() -> object:
    toolchain.compiler.cache_clear()
    yield
    toolchain.compiler.cache_clear()


@pytest.mark.usefixtures("forgotten_compiler")
def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingPackageError, match=r"needs g\+\+, which is not on PATH: sudo apt-get install g\+\+"):
        toolchain.compiler()


@pytest.mark.usefixtures("forgotten_compiler")
def test_on_another_processor_the_error_says_which_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.platform, "machine", lambda: "aarch64")
    with pytest.raises(MissingPackageError, match="needs Linux on x86-64, got Linux on aarch64"):
        toolchain.compiler()
