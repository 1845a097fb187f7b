"""The command that checks and times everything on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.commands import app


@app.command("gpu-check")
def gpu_check(
    json_file: Annotated[Path, typer.Option("--json", metavar="FILE", help="Where the results go.")] = Path(
        "gpu-check.json"
    ),
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="No case begins after so long.")] = 240.0,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="ITEM", help="Of the items; repeats.")] = None,
) -> None:
    """Check and time everything that needs a GPU, into one JSON. Exit code 1 where a case failed, 3 without a GPU.

    The same as `python3 -m labkit.gpu_check`, which needs Python, NumPy, torch and CuPy alone.
    """
    from labkit.gpu_check.command import main  # not at the top: it loads torch

    words = ["--json", str(json_file), "--seconds", str(seconds)]
    for item in only or []:
        words += ["--only", item]
    code = main(words)
    if code:
        raise typer.Exit(code)
