"""The commands about kernels: which there are, and whether a source of one is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit.cli import options as given
from labkit.cli.commands import app
from labkit.cli.printing import print_result
from labkit.errors import DataFileError

NOT_PROVED = 1


@app.command()
def kernels(as_json: given.AsJson = False) -> None:
    """The CUDA kernels: file, op, name expressions, and the option sets that are compiled."""
    from labkit.gpu.catalog import KERNELS

    if as_json:
        rows = [
            {
                "file": source.file,
                "op": source.op,
                "name_expressions": list(source.name_expressions),
                "options": [list(options) for options in source.option_sets],
            }
            for source in KERNELS.values()
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    for source in KERNELS.values():
        typer.echo(f"{source.op}  ({source.path})")
        for expression in source.name_expressions:
            typer.echo(f"  {expression}")


@app.command("check-kernel")
def check_kernel(
    file: Annotated[Path, typer.Argument(metavar="FILE.cu", help="CUDA C source to prove.", show_default=False)],
    op: Annotated[str, typer.Option("--op", metavar="OP", help="The op it implements: one of `labkit kernels`.")],
    as_json: given.AsJson = False,
) -> None:
    """Prove a source of an op without a GPU: results, races, bounds, registers, counts. Exit code 1 when it is wrong.

    The source may be changed freely as long as its kernels keep their names and parameters. Headers are taken from
    beside it, else from the project.
    """
    from labkit.files import PathKind, kind_of, not_found
    from labkit.gpu.catalog import kernel_folder
    from labkit.gpu.verify.prove import prove
    from labkit.views.proof_text import proof_text

    kind = kind_of(file)
    if kind is None:
        own = kernel_folder() / file.name
        hint = f" labkit's own is {str(own)!r}." if own.is_file() else ""
        raise DataFileError(f"{not_found(file, 'kernel source not found:')}{hint}")
    if kind is not PathKind.FILE:
        raise DataFileError(f"{str(file)!r} is a {kind}, no file: name a .cu source.")
    proof = prove(op, file)

    def data() -> dict[str, Any]:
        return proof.as_json

    print_result(as_json, data, lambda: proof_text(proof, _sources(file)))
    if not proof.ok:
        raise typer.Exit(NOT_PROVED)


def _sources(file: Path) -> dict[str, str]:
    """The texts in which findings may lie: the project's headers, those beside the file, the file."""
    from labkit.gpu.catalog import kernel_folder

    headers = [*kernel_folder().glob("*.cuh"), *file.parent.glob("*.cuh")]
    return {path.name: path.read_text(encoding="utf-8", errors="replace") for path in (*headers, file)}
