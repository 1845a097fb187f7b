"""A notebook that names its Config: the Config refuses parameters before the kernel starts and anything is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from labkit.batching.strategies import Strategy
from labkit.cli import main
from labkit.experiments.tune_buckets import Config
from labkit.nbrun.parameters import declared_parameters
from labkit.nbrun.running import declared_of

NOTEBOOK_01 = Path(__file__).parents[1] / "notebooks" / "01_tune_buckets.ipynb"

MODULE = """
from dataclasses import dataclass
from labkit.errors import DataFileError, PolicyError

@dataclass
class Config:
    rows: int = 1
    name: str = "x"
    other: int = 5

    def __post_init__(self):
        if self.rows < 1:
            raise PolicyError(f"rows must be 1 or more: got {self.rows} (name {self.name}, other {self.other}).")
        if self.rows == 13:
            raise ValueError("unlucky")

    def check_files(self):
        if self.name == "gone":
            raise DataFileError("file not found: 'gone'.")

number = 3
"""
PARAMETERS = 'rows: int = 256\nname: str = "from the notebook"\ncomputed = 2 * 3\nout_dir: str = "results"'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder with a module that only a kernel started there would find."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tinyconfig.py").write_text(MODULE)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    yield tmp_path
    import sys

    sys.modules.pop("tinyconfig", None)


def notebook(path: Path, config: Any, source: str = "raise SystemExit('the kernel ran')") -> None:
    cells = [v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}), v4.new_code_cell(source)]
    content = v4.new_notebook(cells=cells, metadata={"labkit": {"config": config}})
    path.write_text(nbformat.writes(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # the notebook's own values are the defaults, what Config has alone stays as it is
        ("-p rows 0", "rows must be 1 or more: got 0 (name from the notebook, other 5)."),
        ("-p rows -1 -p name y -p out_dir z", "rows must be 1 or more: got -1 (name y, other 5)."),
        ("-p rows 13", "tinyconfig:Config refuses the parameters: unlucky"),
        ("-p name gone", "file not found: 'gone'."),
        ("-p rows x -p name gone", "parameter 'rows' must be int: got 'x'."),
        ("-p out_dir /proc/x", "cannot make folder '/proc/x': No such file or directory."),
    ],
)
def test_what_the_config_refuses_is_one_line_before_the_kernel(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    notebook(folder / "n.ipynb", "tinyconfig:Config")
    assert main(["run", "n.ipynb", "--out", "out", *words.split()]) == 2
    assert capsys.readouterr() == ("", f"labkit: {message}\n")
    assert sorted(p.name for p in folder.iterdir()) == ["n.ipynb", "tinyconfig.py"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            "nosuchmodule:Config",
            "the notebook's metadata names a Config that cannot be imported: No module named 'nosuchmodule'.",
        ),
        (
            "tinyconfig:Missing",
            (
                "the notebook's metadata names a Config that cannot be imported: module 'tinyconfig' has no attribute "
                "'Missing'."
            ),
        ),
        ("tinyconfig", "the notebook's metadata labkit.config is 'tinyconfig': expected 'package.module:Name'."),
        (3, "the notebook's metadata labkit.config is 3: expected 'package.module:Name'."),
        ("tinyconfig:number", "the notebook's metadata labkit.config is 'tinyconfig:number', which cannot be called."),
    ],
)
def test_a_config_that_is_not_there_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], config: Any, message: str
) -> None:
    notebook(folder / "n.ipynb", config)
    assert main(["run", "n.ipynb", "--out", "out"]) == 2
    assert capsys.readouterr().err == f"labkit: {message}\n"
    assert not (folder / "out").exists()


@pytest.mark.notebook
def test_parameters_that_the_config_takes_reach_the_kernel(folder: Path) -> None:
    notebook(folder / "n.ipynb", "tinyconfig:Config", "print(rows, name)")
    assert main(["run", "n.ipynb", "--out", "out", "-p", "rows", "7"]) == 0
    assert "7 from the notebook" in (folder / "out" / "n.ipynb").read_text()


def test_the_default_of_a_parameter_is_read_where_it_is_a_literal() -> None:
    found = declared_parameters("a: int = 3\nb = [1, 2]\nc: int\nd = 2 * 3\ne: str | None = None")
    assert {name: (p.default, p.has_default, p.required) for name, p in found.items()} == {
        "a": (3, True, False),
        "b": ([1, 2], True, False),
        "c": (None, False, True),
        "d": (None, False, False),
        "e": (None, True, False),
    }


# --- notebook 01


def test_notebook_01_names_its_config_and_both_have_the_same_parameters() -> None:
    metadata = json.loads(NOTEBOOK_01.read_text(encoding="utf-8"))["metadata"]
    assert metadata["labkit"] == {"config": "labkit.experiments.tune_buckets:Config"}
    declared = declared_of(NOTEBOOK_01)
    assert [name for name in declared if name != "out_dir"] == list(Config.__dataclass_fields__)
    Config(**{p.name: p.default for p in declared.values() if p.name != "out_dir"})


STRATEGIES = ", ".join(Strategy)
PRESETS = "cdnow, household-lines, basket-items, ml-100k, industrial_20m"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("buckets 0", "buckets must be 1 or more: got 0."),
        ("rows 0", "rows must be 1 or more: got 0."),
        ("token_budget 0", "token_budget must be 1 or more: got 0."),
        ("length_multiple 0", "length_multiple must be 1 or more: got 0."),
        ("max_length 0", "max_length must be 1 or more: got 0."),
        ("max_length -1", "max_length must be 1 or more: got -1."),
        ("sequences 0", "sequences must be 1 or more: got 0."),
        ("longest 0", "longest must be 1 or more: got 0."),
        ("longest 3000000000", "longest must be at most 2147483647: got 3000000000."),
        ("alpha 0.5", "alpha must be a finite number above 1: got 0.5. Real logs lie between 1.5 and 3."),
        ("preset ml-1000k", f"no preset 'ml-1000k': did you mean 'ml-100k'? presets are {PRESETS}."),
        ("edges_by bogus", "edges_by 'bogus' does not exist: use one of optimal, quantile, quantile_p95."),
        ("strategy bogus", f"strategy 'bogus' does not exist: use one of {STRATEGIES}."),
        ("lengths_file no.csv", "file not found: 'no.csv'. Check the path, from folder '{folder}'."),
        ("lengths_file no.csv -p preset nope", "file not found: 'no.csv'. Check the path, from folder '{folder}'."),
        ("user_column=", "user_column is empty: name the column that holds the user, or leave it None."),
    ],
)
def test_notebook_01_refuses_what_no_data_could_make_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(NOTEBOOK_01, tmp_path / "n.ipynb")
    assert main(["run", "n.ipynb", "--out", "out", "-p", *words.split()]) == 2
    assert capsys.readouterr() == ("", f"labkit: {message.format(folder=tmp_path)}\n")
    assert [p.name for p in tmp_path.iterdir()] == ["n.ipynb"]
