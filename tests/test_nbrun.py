"""Notebooks without a browser: what fails before the kernel starts, what is left behind, which kernel runs."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbformat import v4

from labkit.cli import main
from labkit.errors import DataFileError, NotebookError, NotebookRunError
from labkit.nbrun import RunResult, run_notebook

PARAMETERS = (
    'rows: int = 256  # sequences a batch, 1..\nflag: bool = False\ncap: int | None = None\nout_dir: str = "results"'
)
SHOW = "import json, os, sys\nimport labkit\nprint(json.dumps([rows, flag, cap, out_dir, os.getcwd(), sys.executable]))"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notebook(path: Path, *cells: str, parameters: str | None = PARAMETERS) -> Path:
    tagged = [] if parameters is None else [v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    content = v4.new_notebook(cells=[v4.new_markdown_cell("# A lab"), *tagged, *map(v4.new_code_cell, cells)])
    path.write_text(nbformat.writes(content), encoding="utf-8")
    return path


def printed(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(output.get("text", [])) for output in outputs)


# --- before the kernel


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rowz": 3}, "unknown parameter 'rowz': did you mean 'rows'? The notebook declares rows, flag, cap, out_dir."),
        ({"rows": "many"}, "parameter 'rows' must be int: got 'many'."),
        ({"flag": "yes"}, "parameter 'flag' must be bool: got 'yes' (write true or false)."),
        ({"cap": float("nan")}, "parameter 'cap' must be int | None: got nan."),
    ],
    ids=["unknown", "text", "bool", "NaN"],
)
def test_wrong_parameters_fail_before_anything_is_written(folder: Path, given: dict[str, Any], message: str) -> None:
    path = notebook(folder / "n.ipynb", "raise SystemExit('the kernel ran')")
    with pytest.raises(NotebookError, match=f"^{re.escape(message)}$"):
        run_notebook(path, given, folder / "out")
    assert [p.name for p in folder.iterdir()] == ["n.ipynb"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not JSON", "'n.ipynb' is not a Jupyter notebook (.ipynb, format 4)."),
        ("[]", "'n.ipynb' is not a Jupyter notebook (.ipynb, format 4)."),
        ('{"cells": [{}], "metadata": {}}', "'n.ipynb' is not a Jupyter notebook (.ipynb, format 4)."),
        (
            '{"cells": [], "metadata": {"kernelspec": {"name": "ir", "language": "R"}}}',
            "'n.ipynb' is a notebook of R: labkit runs those of Python.",
        ),
    ],
    ids=["text", "list", "no metadata", "other language"],
)
def test_what_is_no_notebook_of_python_is_refused(folder: Path, content: str, message: str) -> None:
    (folder / "n.ipynb").write_text(content)
    with pytest.raises(NotebookError, match=f"^{re.escape(message)}$"):
        run_notebook("n.ipynb", {}, "out")
    assert not (folder / "out").exists()


def test_files_that_are_in_the_way(folder: Path) -> None:
    path = notebook(folder / "n.ipynb")
    (folder / "file").write_text("")
    with pytest.raises(DataFileError, match=r"^no notebook 'no\.ipynb'\. Check the path, from folder '"):
        run_notebook("no.ipynb", {}, "out")
    with pytest.raises(DataFileError, match=r"^cannot read '\.': Is a directory\.$"):
        run_notebook(".", {}, "out")
    with pytest.raises(DataFileError, match=r"^cannot make folder 'file': File exists\.$"):
        run_notebook(path, {}, "file")
    with pytest.raises(
        DataFileError, match=r"^the executed notebook would overwrite 'n\.ipynb': choose another folder"
    ):
        run_notebook("n.ipynb", {}, ".")


def test_the_command_refuses_in_one_line_with_code_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook(folder / "n.ipynb")
    for words, message in (
        ("-p rowz 3", "unknown parameter 'rowz': did you mean 'rows'? The notebook declares rows, flag, cap, out_dir."),
        ("-p flag 1", "parameter 'flag' must be bool: got '1' (write true or false)."),
        ("-p cap -1.5", "parameter 'cap' must be int | None: got '-1.5'."),
    ):
        assert main(["run", "n.ipynb", "--out", "out", *words.split()]) == 2
        assert capsys.readouterr().err == f"labkit: {message}\n"
    assert [p.name for p in folder.iterdir()] == ["n.ipynb"]


# --- with a kernel


@pytest.mark.notebook
def test_a_run_sets_parameters_and_keeps_the_executed_notebook(folder: Path) -> None:
    path, seen = notebook(folder / "n.ipynb", SHOW, "", "rows + 1"), []
    out = folder / "new" / "out"
    result = run_notebook(path, {"rows": np.int64(64), "flag": "true"}, out, on_progress=lambda *now: seen.append(now))
    assert json.loads(printed(out / "n.ipynb")) == [64, True, None, str(out), str(folder), sys.executable]
    assert result == RunResult(
        notebook=out / "n.ipynb",
        out_dir=out,
        parameters={"rows": 64, "flag": True, "out_dir": str(out)},
        cells=4,
        seconds=result.seconds,
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [p.name for p in out.iterdir()] == ["n.ipynb"]
    metadata = json.loads((out / "n.ipynb").read_text())["metadata"]
    assert "widgets" not in metadata
    assert (metadata["papermill"]["input_path"], metadata["papermill"]["output_path"]) == ("n.ipynb", "n.ipynb")
    assert nbformat.validate(nbformat.read(out / "n.ipynb", as_version=4)) is None


@pytest.mark.notebook
def test_a_given_out_dir_wins_and_odd_names_of_folders_do_no_harm(folder: Path) -> None:
    path = notebook(folder / "n{0}.ipynb", SHOW)
    run_notebook(path, {"out_dir": "mine"}, "out {x} é")
    assert json.loads(printed(folder / "out {x} é" / "n{0}.ipynb"))[3] == "mine"


@pytest.mark.notebook
def test_a_notebook_without_parameters_runs(folder: Path) -> None:
    path = notebook(folder / "n.ipynb", "print('ran')", parameters=None)
    assert run_notebook(path, {}, "out").cells == 1
    assert printed(folder / "out" / "n.ipynb") == "ran\n"


@pytest.mark.notebook
def test_a_cell_that_raises_is_named_and_what_ran_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook(folder / "n.ipynb", "print('before')", "# why\nassert rows != 13, 'unlucky'\n", "print('after')")
    (folder / "out").mkdir()
    (folder / "out" / "n.ipynb").write_text("of an earlier run")
    assert main(["run", "n.ipynb", "--out", "out", "-p", "rows", "13"]) == 1
    kept = folder / "out" / "n.failed.ipynb"
    captured = capsys.readouterr()
    assert captured.err == f"labkit: n.ipynb: cell 4 ('# why') raised AssertionError: unlucky (kept: {kept})\n"
    assert captured.out == ""
    assert printed(kept) == "before\n"
    assert (folder / "out" / "n.ipynb").read_text() == "of an earlier run"
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["n.failed.ipynb", "n.ipynb"]

    assert main(["run", "n.ipynb", "--out", "out", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["notebook"] == str(folder / "out" / "n.ipynb")
    assert [p.name for p in (folder / "out").iterdir()] == ["n.ipynb"]


@pytest.mark.notebook
def test_a_kernel_that_dies_is_named_with_its_cell(folder: Path) -> None:
    path = notebook(folder / "n.ipynb", "print('before', flush=True)", "import os; os._exit(3)", parameters=None)
    with pytest.raises(NotebookRunError, match=r"^n\.ipynb: cell 2 \('import os; os\._exit\(3\)'\) .*Kernel died"):
        run_notebook(path, {}, "out")
    assert [p.name for p in (folder / "out").iterdir()] == ["n.failed.ipynb"]


@pytest.mark.notebook
def test_the_kernel_is_this_interpreter_whatever_kernels_are_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a kernel of the name python3 that could not even start, found before all others
    spec = folder / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["/no/such/python"], "display_name": "wrong", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
    path = notebook(folder / "n.ipynb", SHOW)
    content = json.loads(path.read_text())
    content["metadata"]["kernelspec"] = {"name": "some-other-env", "display_name": "x", "language": "python"}
    path.write_text(json.dumps(content))
    run_notebook(path, {}, "out")
    assert json.loads(printed(folder / "out" / "n.ipynb"))[5] == sys.executable


@pytest.mark.notebook
def test_nothing_but_the_result_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    notebook(folder / "n.ipynb", "import os; os.write(1, b'')")
    assert main(["run", "n.ipynb", "--out", "out", "-p", "cap", "3"]) == 0
    captured = capfd.readouterr()
    assert re.fullmatch(rf"3 cells in \d+\.\d s: {re.escape(os.fspath(folder))}/out/n\.ipynb\n", captured.out)
    assert captured.err == ""
