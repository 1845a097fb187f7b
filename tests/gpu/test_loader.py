from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from labkit.gpu import catalog, loader

HEADER = "__device__ int one() { return 1; }\n"
SOURCE = '#include "part.cuh"\n__global__ void add(int* out) { *out += one(); }\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels with one file and its header; what is loaded is the text itself."""

    def loaded(source: Any, text: str, expression: str, device: int) -> str:
        return text

    monkeypatch.setattr(catalog, "_FOLDERS", (tmp_path,))
    monkeypatch.setitem(catalog.KERNELS, "add", catalog.KernelSource("add.cu", "add", ("add",)))
    monkeypatch.setattr(loader, "_texts", {})
    monkeypatch.setattr(loader, "_function", loaded)
    (tmp_path / "part.cuh").write_text(HEADER)
    (tmp_path / "add.cu").write_text(SOURCE)
    return tmp_path


def edit(file: Path, text: str) -> None:
    later = file.stat().st_mtime_ns + 1_000_000
    file.write_text(text)
    os.utime(file, ns=(later, later))


def test_a_kernel_that_is_not_edited_is_loaded_once(folder: Path) -> None:
    assert loader.kernel("add", "add", 0) is loader.kernel("add", "add", 0)


def test_an_edited_kernel_is_loaded_anew(folder: Path) -> None:
    before = loader.kernel("add", "add", 0)
    edit(folder / "add.cu", SOURCE.replace("int* out", "int* sum").replace("*out", "*sum"))
    after = loader.kernel("add", "add", 0)
    assert before.parameters[0].name == "out"
    assert after.parameters[0].name == "sum"
    assert "*sum += one()" in after.function


def test_so_is_one_of_which_a_header_is_edited(folder: Path) -> None:
    loader.kernel("add", "add", 0)
    edit(folder / "part.cuh", HEADER.replace("return 1", "return 2"))
    assert "return 2" in loader.kernel("add", "add", 0).function
