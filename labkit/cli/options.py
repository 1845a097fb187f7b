"""The options of the commands and how their texts are parsed; a text that is no value is named in one line."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from labkit.batching.policy import Overflow, Oversize, PadTo
from labkit.batching.strategies import Strategy
from labkit.cost.devices import Precision
from labkit.errors import NotebookError
from labkit.experiments.lineup import EdgesBy
from labkit.interchange.foreign import EdgeFormat
from labkit.models.registry import Model
from labkit.units import shown

_E = TypeVar("_E", bound=StrEnum)


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        is_long = text.strip().lstrip("+-").isdecimal()  # Python reads no integer of thousands of digits
        raise typer.BadParameter(f"{shown(text)} {'is too large' if is_long else 'is not a whole number'}.") from None


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{shown(text)} is not a number.") from None


def whole_numbers(text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    return tuple(whole(part.strip()) for part in text.split(","))


def numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    return tuple(number(part.strip()) for part in text.split(","))


def choice_of(name: str, help_text: str, options: type[_E]) -> Any:
    """An option whose value is a key of an enum."""

    def parse(text: str) -> _E:
        try:
            return options(text)
        except ValueError:
            raise typer.BadParameter(f"{shown(text)} does not exist: use one of {', '.join(options)}.") from None

    return typer.Option(f"--{name}", parser=parse, metavar="|".join(options), help=help_text)


def _parsed(name: str, help_text: str, parser: Callable[[str], Any] = whole, metavar: str = "N") -> Any:
    """An option with a parser of ours."""
    return typer.Option(f"--{name}", parser=parser, metavar=metavar, help=help_text)


Lengths = Annotated[
    str,
    typer.Argument(
        metavar="LENGTHS",
        show_default=False,
        help="A preset's name, a histogram CSV (length,count), an .npy of lengths, an event table (Parquet; CSV with "
        "--user) or a tuned JSON.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of an event table that names the user.")]
Users = Annotated[str | None, typer.Option(metavar="FILE", help="Table of all users: those without events count as 0.")]
TokenBudget = Annotated[
    int | None, _parsed("token-budget", "Most slots (padded) or events (jagged) of a batch. [16384]")
]
LengthMultiple = Annotated[int | None, _parsed("length-multiple", "Round padded widths up to a multiple. [1]")]

# what-if
Strategies = Annotated[list[Strategy] | None, choice_of("strategy", "Only this one; repeat for more. [all]", Strategy)]
Buckets = Annotated[int | None, _parsed("buckets", "Most bucket edges, where they are computed. [8]")]
By = Annotated[EdgesBy | None, choice_of("edges-by", "How edges are computed. [optimal]", EdgesBy)]
Quantiles = Annotated[
    str | None, _parsed("quantiles", "Edges at these quantiles, such as .2,.4,.95.", numbers, "Q,Q,..")
]
Edges = Annotated[str | None, _parsed("edges", "These bucket edges, such as 8,20,50.", whole_numbers, "N,N,..")]
EdgeCost = Annotated[
    str | None,
    _parsed(
        "edge-cost",
        "What optimal edges make least of: slots, or L + ALPHA L^2. [slots]",
        str,
        "slots|attention[:ALPHA]",
    ),
]
Rows = Annotated[int | None, _parsed("rows", "Sequences a batch, in the strategies with fixed rows. [256]")]
MaxRows = Annotated[int | None, _parsed("max-rows", "Most rows of a jagged batch. [65536]")]
MaxLength = Annotated[
    int | None, _parsed("max-length", "Keep the most recent events only. [no cap; pad_recent: ceil(P99)]")
]
OverflowBy = Annotated[
    Overflow | None,
    choice_of("overflow", "Lengths above the last edge, or the capacity; split is for packed. [error]", Overflow),
]
OversizeBy = Annotated[Oversize | None, choice_of("oversize", "Widths above the token budget. [error]", Oversize)]
Padding = Annotated[PadTo | None, choice_of("pad-to", "Width of a batch of a bucket. [edge]", PadTo)]
RowMultiple = Annotated[int | None, _parsed("row-multiple", "Round a bucket's rows down to a multiple. [1]")]
Capacity = Annotated[int | None, _parsed("capacity", "Slots of a pack. [longest after the cap]")]
ModelKey = Annotated[Model | None, choice_of("model", "Model the launches and memory of a training step too.", Model)]
GpuName = Annotated[str | None, _parsed("gpu", "Model the time on this GPU, such as H100; needs --model.", str, "NAME")]
Training = Annotated[
    bool | None, typer.Option("--train/--inference", help="Model training steps, or forward passes. [train]")
]
PrecisionKey = Annotated[
    Precision | None, choice_of("precision", "Of matrix products: float32 or tf32; needs --gpu. [float32]", Precision)
]
MaxSequencesPerPack = Annotated[int | None, _parsed("max-sequences-per-pack", "Most sequences of a pack. [no limit]")]

# tune
TunedOut = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="The tuned JSON to write; its folder must exist.")
]
MaxBuckets = Annotated[int | None, _parsed("max-buckets", "Most bucket edges. [8]")]
MaxEventsLost = Annotated[
    float | None, _parsed("max-events-lost", "Share of the events that a cap may cut. [0: no cap]", number, "SHARE")
]
TuneStrategy = Annotated[
    Strategy | None,
    choice_of("strategy", "bucket_budget, or bucket_graph with its ghost rows. [bucket_budget]", Strategy),
]
ChargePerBucket = Annotated[
    float | None, _parsed("charge-per-bucket", "What one more bucket must save, in slots an epoch. [0]", number)
]

# score-edges, convert
EdgeFile = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="JSON with the edges.")]
EdgeFormatOf = Annotated[EdgeFormat, choice_of("format", "Whose edges they are.", EdgeFormat)]
TunedFile = Annotated[
    Path, typer.Argument(metavar="TUNED", show_default=False, help="A tuned JSON with a bucket strategy.")
]
TargetFormat = Annotated[EdgeFormat, choice_of("to", "Whose edges to write.", EdgeFormat)]
TargetFile = Annotated[Path, typer.Option("--out", metavar="FILE", help="The JSON to write; its folder must exist.")]

# run
Notebook = Annotated[Path, typer.Argument(metavar="NOTEBOOK", show_default=False, help="The .ipynb to run.")]
RunOut = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where the executed notebook goes; made if it is not there.")
]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", metavar="NAME VALUE", help="Set a parameter; repeat for more.")
]


def joined_pairs(arguments: list[str]) -> list[str]:
    """Write ``-p NAME VALUE`` as ``-p NAME=VALUE``, which the parser can take; a name never holds a ``=``.

    Raises:
        NotebookError: a name without a value.
    """
    joined, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        joined.append(word)
        if word == "--":
            break
        if word == "-p" and rest:
            name = rest.pop(0)
            if "=" not in name:
                if not rest:
                    raise NotebookError(f"parameter {shown(name)} has no value: write -p NAME VALUE.")
                name = f"{name}={rest.pop(0)}"
            joined.append(name)
    return joined + rest
