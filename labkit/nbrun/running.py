"""Run a notebook: everything that can be wrong is found before its kernel starts, and its output is written whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import DataFileError, NotebookError, NotebookRunError
from labkit.files import check_folder, not_found, reason_of, write_whole, written_whole
from labkit.nbrun.config_check import check_config
from labkit.nbrun.kernel import Progress, execute
from labkit.nbrun.parameters import Parameter, checked_parameters, declared_parameters


@dataclass(frozen=True, slots=True)
class RunResult:
    """A notebook that ran to its end.

    Attributes:
        notebook: the executed notebook.
        out_dir: its folder, absolute.
        parameters: what was set, as plain Python values.
        cells: code cells that ran, the one with the parameters set included.
        seconds: wall-clock time, the start of the kernel included.
    """

    notebook: Path
    out_dir: Path
    parameters: dict[str, Any]
    cells: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "notebook": str(self.notebook),
            "out_dir": str(self.out_dir),
            "parameters": self.parameters,
            "cells": self.cells,
            "seconds": round(self.seconds, 3),
        }


def run_notebook(
    path: str | os.PathLike[str],
    parameters: Mapping[str, Any],
    out_dir: str | os.PathLike[str],
    *,
    on_progress: Progress | None = None,
) -> RunResult:
    """Run a notebook and keep the executed one in ``out_dir`` under its own name.

    The kernel is the running interpreter, its working folder the current one. Where the notebook declares ``out_dir``
    and it is not given, it is set to the absolute ``out_dir``.

    Args:
        path: of the ``.ipynb``.
        parameters: values by name; a text is converted to the declared type, see ``checked_parameters``.
        out_dir: folder of the results, made if it is not there, after everything was checked.
        on_progress: called after every code cell with the cells done and the cells in all.

    Raises:
        DataFileError: no such notebook, or a folder of results that is none and cannot be made.
        NotebookError: not a notebook of Python, an unknown or ill-typed parameter; nothing was written.
        LabkitError: the Config that the notebook names refuses the parameters, see ``check_config``; nothing written.
        NotebookRunError: a cell raised; what ran is kept as ``<name>.failed.ipynb``.
    """
    source = Path(path)
    folder = _absolute(out_dir)
    values = _checked(source, parameters, folder)
    if folder / source.name == source.absolute():
        raise DataFileError(f"the executed notebook would overwrite {str(source)!r}: choose another folder for it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(f"cannot make folder {os.fspath(out_dir)!r}: {reason_of(error)}.") from error
    start = time.perf_counter()
    cells = _run(source.absolute(), folder / source.name, values, on_progress)
    return RunResult(folder / source.name, folder, values, cells, time.perf_counter() - start)


def check_values(path: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse what ``run_notebook`` would refuse of the parameters on any machine: no file or device is looked for.

    Raises:
        DataFileError, NotebookError, LabkitError: as ``run_notebook``.
    """
    declared, metadata = _read(path)
    check_config(metadata, declared, checked_parameters(declared, parameters), files=False)


def _checked(path: Path, parameters: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The parameters as plain Python values; ``out_dir``, where it is declared and not given, is ``folder``."""
    declared, metadata = _read(path)
    values = checked_parameters(declared, parameters)
    if isinstance(given := values.get("out_dir"), str):
        check_folder(given, made_before=folder)
    elif "out_dir" in declared:
        values |= checked_parameters({"out_dir": declared["out_dir"]}, {"out_dir": str(folder)})
    check_config(metadata, declared, values)
    return values


def declared_of(path: Path) -> dict[str, Parameter]:
    """The parameters that a notebook declares in its cell tagged ``parameters``; none where there is no such cell.

    Raises:
        DataFileError: there is no such file; NotebookError: it is no notebook of Python.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, Parameter], dict[str, Any]]:
    """The declared parameters and the metadata."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        cells, metadata = data["cells"], data["metadata"]
        language = metadata.get("kernelspec", {}).get("language", "python")
        tagged = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
        source = "".join(tagged[0]["source"]) if tagged else ""
    except FileNotFoundError:
        raise not_found(path, "no notebook") from None
    except OSError as error:
        raise DataFileError(f"cannot read {str(path)!r}: {reason_of(error)}.") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotebookError(f"{str(path)!r} is not a Jupyter notebook (.ipynb, format 4).") from None
    if language != "python":
        raise NotebookError(f"{str(path)!r} is a notebook of {language}: labkit runs those of Python.")
    return declared_parameters(source), metadata


def _absolute(out_dir: str | os.PathLike[str]) -> Path:
    try:
        return Path(out_dir).absolute()
    except OSError as error:  # the current folder is gone
        raise DataFileError(f"cannot make folder {os.fspath(out_dir)!r}: {reason_of(error)}.") from error


def _run(source: Path, target: Path, values: dict[str, Any], on_progress: Progress | None) -> int:
    failed = target.with_name(f"{target.stem}.failed.ipynb")
    with written_whole(target) as partial:
        try:
            cells = execute(source, partial, values, on_progress)
        except BaseException as error:  # an interruption too: what ran is worth keeping
            if partial.exists():
                _name_paths(partial, source, failed)
                partial.replace(failed)
            if isinstance(error, NotebookRunError):
                raise NotebookRunError(f"{source.name}: {error} (kept: {failed})") from None
            raise
        _name_paths(partial, source, target)
    with suppress(OSError):  # a name too long for a failed run is no reason to fail
        failed.unlink()  # of an earlier run
    return cells


def _name_paths(executed: Path, source: Path, target: Path) -> None:
    """Put the names of the notebooks into the metadata, instead of the paths of this machine."""
    data = json.loads(executed.read_text(encoding="utf-8"))
    data["metadata"].get("papermill", {}).update(input_path=source.name, output_path=target.name)
    write_whole(executed, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
