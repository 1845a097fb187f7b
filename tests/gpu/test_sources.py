from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import DataFileError
from labkit.gpu.catalog import KERNELS
from labkit.gpu.sources import includes, kernel_text

SOURCE = '// first\n#include "extra.cuh"\nint third;\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "extra.cuh").write_text("int extra;\n")
    (tmp_path / "own.cu").write_text(SOURCE)
    return tmp_path / "own.cu"


def test_headers_are_put_in_and_lines_keep_their_file_and_number(path: Path) -> None:
    assert kernel_text(path).splitlines() == [
        '#line 1 "own.cu"',
        "// first",
        '#line 1 "extra.cuh"',
        "int extra;",
        '#line 3 "own.cu"',
        "int third;",
    ]


def test_a_changed_text_takes_the_place_of_the_file(path: Path) -> None:
    assert kernel_text(path, SOURCE.replace("third", "changed")).endswith("int changed;\n")


def test_a_source_elsewhere_finds_the_headers_of_the_project(tmp_path: Path) -> None:
    assert "struct Share" in kernel_text(tmp_path / "mine.cu", '#include "rows.cuh"\n')


def test_what_is_missing_is_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"cannot read the kernel source .*missing\.cu: No such file"):
        kernel_text(tmp_path / "missing.cu")


def test_a_header_that_is_nowhere_is_left_to_the_compilers(path: Path) -> None:
    text = kernel_text(path, '#include "absent.cuh"\n#include "extra.cuh"\n')
    assert text == '#line 1 "own.cu"\n#include "absent.cuh"\n#line 1 "extra.cuh"\nint extra;\n#line 3 "own.cu"\n'
    assert includes(text)
    assert not includes(kernel_text(path))


@pytest.mark.parametrize("content", [b"\x7fELF\xff\xfe", "// größer".encode("latin-1"), b"int a;\0int b;"])
@pytest.mark.parametrize("name", ["own.cu", "extra.cuh"])
def test_what_is_no_text_is_refused(path: Path, name: str, content: bytes) -> None:
    (path.parent / name).write_bytes(content)
    with pytest.raises(DataFileError, match=rf"cannot read the kernel source .*{name}: expected .*text, got"):
        kernel_text(path)


@pytest.mark.parametrize("op", KERNELS)
def test_no_include_is_left(op: str) -> None:
    assert "#include" not in kernel_text(KERNELS[op].path)
