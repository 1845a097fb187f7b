"""`labkit kernels` and `labkit check-kernel`: JSON as it is promised, exit codes, one line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.cli import main
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host import toolchain
from labkit.gpu.nvrtc import ARCHES

COPY = KERNELS["jagged_to_padded"]


def test_the_kernels_of_the_catalog_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [set(row) for row in rows] == [{"file", "op", "name_expressions", "options"}] * len(KERNELS)
    assert {row["op"]: (row["file"], tuple(row["name_expressions"])) for row in rows} == {
        op: (source.file, source.name_expressions) for op, source in KERNELS.items()
    }
    assert main(["kernels"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for source in KERNELS.values() for name in source.name_expressions)


def test_a_right_source_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-kernel", str(COPY.path), "--op", "jagged_to_padded", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["op"], found["ok"], found["equal"], found["reports"]) == ("jagged_to_padded", True, True, [])
    assert set(found["resources"]) == {f"sm_{arch}" for arch in ARCHES}
    taken = found["resources"]["sm_90"]["jagged_to_padded<uint4, unsigned>"]
    assert taken["registers"] > 0
    assert taken["spill_bytes"] == 0
    (store,) = (c for c in found["counts"] if c["access"] == "store" and c["access_bytes"] == 16)
    assert store["file"] == "jagged_to_padded.cu"
    assert store["sectors"] == store["ideal_sectors"]  # whole rows of 16 bytes a lane
    assert found["provenance"]["counts"] == "modelled"


def test_a_wrong_source_is_exit_code_1_and_shows_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.cu"
    line = "values[stop * units + unit]"
    file.write_text(COPY.path.read_text().replace("values[(stop - kept) * units + unit]", line))
    assert main(["check-kernel", str(file), "--op", "jagged_to_padded"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("mine.cu as jagged_to_padded: NOT proved\n")
    assert "do NOT equal the float64 reference" in text
    number = file.read_text()[: file.read_text().index(line)].count("\n") + 1
    assert f"mine.cu:{number}: out of bounds" in text
    assert f"  > if (unit < kept * units) value = {line};" in text
    assert main(["check-kernel", str(file), "--op", "jagged_to_padded", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["equal"]) == (False, False)
    assert ("out_of_bounds", number) in {(report["kind"], report["line"]) for report in found["reports"]}


def test_bad_input_is_one_line(complaint: Callable[..., str]) -> None:
    assert complaint("check-kernel none.cu --op bin_rows").startswith(
        "kernel source not found: 'none.cu'. Check the path"
    )
    assert complaint("check-kernel bin_rows.cu --op bin_rows").endswith("/kernels/bin_rows.cu'.")
    assert "'.' is a folder, no file" in complaint("check-kernel . --op bin_rows")
    assert "Missing option '--op'" in complaint("check-kernel none.cu")

    def a_file(folder: Path) -> None:
        (folder / "a.cu").write_text("// nothing\n")

    def a_program(folder: Path) -> None:
        (folder / "a.cu").write_bytes(b"\x7fELF\x80")

    assert "a.cu: expected UTF-8 text, got byte 0x80 at 4" in complaint("check-kernel a.cu --op bin_rows", a_program)
    unknown = complaint("check-kernel a.cu --op sort", a_file)
    assert unknown.startswith("there is no op 'sort': expected one of bin_rows, jagged_to_padded")


def test_no_compiler_is_one_line_with_what_to_install(
    complaint: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    toolchain.compiler.cache_clear()
    try:
        line = complaint(["check-kernel", str(COPY.path), "--op", "jagged_to_padded"])
    finally:
        toolchain.compiler.cache_clear()
    assert "needs g++, which is not on PATH: sudo apt-get install g++" in line
