"""The entry point: what goes wrong becomes one line on stderr and an exit code."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from labkit.cli import edge_commands as _edge_commands  # noqa: F401  registers its commands
from labkit.cli import gpu_check_command as _gpu_check_command  # noqa: F401  likewise
from labkit.cli import kernel_commands as _kernel_commands  # noqa: F401  likewise
from labkit.cli import measure_command as _measure_command  # noqa: F401  likewise
from labkit.cli import profile_command as _profile_command  # noqa: F401  likewise
from labkit.cli.commands import app
from labkit.cli.options import joined_pairs
from labkit.cli.printing import INTERRUPTED
from labkit.errors import LabkitError, LengthsWarning, NotebookRunError

A_CELL_RAISED = 1
BAD_INPUT = 2
PIPE_CLOSED = 141  # 128 + SIGPIPE

_MOST_SHOWN = 60
_LONG_WORD = re.compile(r"[^\s'\",]{201,}")  # no path that one would read; what was typed, echoed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; None: those of this process.

    Returns:
        The exit code: 0; 2 for bad input, 1 for a notebook whose cell raised, 130 when interrupted.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", LengthsWarning)
        warnings.showwarning = _note
        return _run(words)


def _run(words: list[str]) -> int:
    try:
        code = typer.main.get_command(app).main(joined_pairs(words), prog_name="labkit", standalone_mode=False)
        sys.stdout.flush()
    except NotebookRunError as error:
        return _complain(str(error), A_CELL_RAISED)
    except LabkitError as error:
        return _complain(str(error), BAD_INPUT)
    except typer.TyperException as error:  # the parser's own
        return _complain(error.format_message(), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads has enough; keep the interpreter from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    """One line."""
    line = _LONG_WORD.sub(lambda word: word[0][:_MOST_SHOWN] + "...", " ".join(message.split()))
    typer.echo(f"labkit: {line}".encode(errors="backslashreplace"), err=True)
    return code


def _note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """A warning as one line, without the place in our source."""
    _complain(f"note: {message}", 0)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"labkit {version_of('labkit')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
