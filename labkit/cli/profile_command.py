"""The command that prints the profilers' command lines for a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from labkit.batching.strategies import Strategy
from labkit.cli import options as given
from labkit.cli.commands import app
from labkit.cli.printing import print_result
from labkit.errors import NotebookError
from labkit.files import expanded
from labkit.units import shown

_Notebook = Annotated[
    Path | None, typer.Argument(metavar="[NOTEBOOK]", show_default=False, help="The .ipynb whose run is profiled.")
]
_Command = Annotated[
    str | None, typer.Option("--command", metavar="TEXT", help="Instead of a notebook: the command line to profile.")
]
_Folder = Annotated[str, typer.Option("--out", metavar="DIR", help="Where the reports go.")]
_Launches = Annotated[int, typer.Option("--launch-count", metavar="N", min=1, help="Kernels that ncu looks at.")]
_Strategy = Annotated[Strategy | None, given.choice_of("strategy", "Kernels of this strategy only. [all]", Strategy)]


@app.command()
def profile(
    notebook: _Notebook = None,
    command: _Command = None,
    parameter: given.Parameters = None,
    strategy: _Strategy = None,
    launch_count: _Launches = 50,
    out: _Folder = "results/profile",
    as_json: given.AsJson = False,
) -> None:
    """Print the nsys and ncu command lines for a run, with the metrics that matter and what they mean.

    Nothing is run. The notebook and its parameters are checked, and whether the tools are here; files and devices that
    the parameters name are not: they may be those of another machine.
    """
    from labkit.experiments.profile import profile as lines_of
    from labkit.experiments.profile import profile_report, profile_text

    run, name = _run(notebook, command, parameter or [], out)
    found = lines_of(run, out, name, strategy=strategy, launches=launch_count)
    print_result(as_json, lambda: profile_report(found), lambda: profile_text(found))


def _run(notebook: Path | None, command: str | None, pairs: list[str], out: str) -> tuple[tuple[str, ...], str]:
    """The words of the run, and a name for its reports."""
    from labkit.experiments.profile import notebook_run
    from labkit.nbrun.running import check_values

    if (notebook is None) == (command is None):
        raise NotebookError("what to profile is not clear: give a NOTEBOOK or --command, one of the two.")
    if notebook is not None:
        parameters = dict(pair.split("=", 1) for pair in pairs)
        check_values(Path(expanded(notebook)), parameters)
        return notebook_run(str(notebook), parameters, out), notebook.stem
    if pairs:
        raise NotebookError("-p sets parameters of a notebook: write them into --command.")
    try:
        words = tuple(shlex.split(command or ""))
    except ValueError as error:
        raise NotebookError(f"--command {shown(command or '')} cannot be read: {error}.") from None
    if not words:
        raise NotebookError("--command is empty: give the command line to profile.")
    return words, Path(words[0]).stem
