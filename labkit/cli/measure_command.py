"""The command that runs models: one process that parses and shows, another that measures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labkit.cli import options as given
from labkit.cli.commands import app
from labkit.cli.printing import INTERRUPTED, print_result
from labkit.errors import LabkitError, PolicyError
from labkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from labkit.experiments.measure_child import ChildRun
    from labkit.experiments.measure_job import Progress
    from labkit.experiments.measure_report import MeasureReport

ModelKey = Annotated[str, typer.Option("--model", metavar="KEY", help="din, sasrec, gru4rec, pooled or ctr.")]
Seconds = Annotated[
    float | None,
    typer.Option("--seconds", parser=given.number, metavar="S", help="Time a strategy, one step at least. [5]"),
]
Epoch = Annotated[bool, typer.Option("--epoch", help="Instead of seconds: a whole epoch, however long it takes.")]
Device = Annotated[str, typer.Option("--device", metavar="cpu|cuda|cuda:N", help="Where it runs.")]
Train = Annotated[bool, typer.Option("--train/--inference", help="Training steps, or forward passes.")]
WarmUp = Annotated[
    int, typer.Option("--warm-up", parser=given.whole, metavar="N", help="Steps before the timed ones, >= 1.")
]
AmpKey = Annotated[str | None, typer.Option("--amp", metavar="bf16|fp16", help="Mixed precision. [float32]")]
Compile = Annotated[bool, typer.Option("--compile", help="Use torch.compile; recompiles are counted.")]
Workers = Annotated[int, typer.Option("--workers", parser=given.whole, metavar="N", help="Loader processes.")]
Prefetch = Annotated[
    int, typer.Option("--prefetch", parser=given.whole, metavar="N", help="Batches a worker is ahead.")
]
Pin = Annotated[bool | None, typer.Option("--pin-memory/--no-pin-memory", help="[on where the model is on a GPU]")]
OnDevice = Annotated[bool, typer.Option("--pad-on-device", help="Copy rows end to end, and pad them on the device.")]
Seed = Annotated[int, typer.Option("--seed", parser=given.whole, metavar="N", help="Of plan, samples and weights.")]
Sequences = Annotated[
    int | None,
    typer.Option("--sequences", parser=given.whole, metavar="N", help="Sample more sequences down to it. [20000]"),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Keep the JSON there too; its folder must exist.")
]


@app.command()
def measure(
    lengths: given.Lengths,
    strategy: given.Strategies = None,
    model: ModelKey = "din",
    seconds: Seconds = None,
    epoch: Epoch = False,
    device: Device = "cpu",
    train: Train = True,
    amp: AmpKey = None,
    compile: Compile = False,  # noqa: A002
    warm_up: WarmUp = 2,
    workers: Workers = 0,
    prefetch: Prefetch = 2,
    pin_memory: Pin = None,
    pad_on_device: OnDevice = False,
    seed: Seed = 0,
    sequences: Sequences = None,
    buckets: given.Buckets = None,
    edges: given.Edges = None,
    edges_by: given.By = None,
    rows: given.Rows = None,
    token_budget: given.TokenBudget = None,
    max_length: given.MaxLength = None,
    overflow: given.OverflowBy = None,
    length_multiple: given.LengthMultiple = None,
    user: given.User = None,
    users: given.Users = None,
    out: Out = None,
    as_json: given.AsJson = False,
) -> None:
    """Run every strategy on this machine: real events a second, time an epoch, peak memory, launches, utilization.

    The events are made up; the lengths are yours. A tuned JSON is measured with its settings. Strategies that the model
    does not take say why. Where none could be measured the exit code is 2; Ctrl-C keeps what was, and exits with 130.
    """
    from labkit.experiments.execution import DEFAULT_SECONDS, DEFAULT_SEQUENCES, Execution
    from labkit.files import check_target

    if epoch and seconds is not None:
        raise PolicyError(f"--epoch contradicts --seconds {seconds:g}: an epoch takes what it takes. Leave one out.")
    execution = Execution(
        seconds=DEFAULT_SECONDS if seconds is None else seconds,
        epoch=epoch,
        train=train,
        warm_up=warm_up,
        amp=amp,  # type: ignore[arg-type]  # a key becomes its member
        compile=compile,
        workers=workers,
        pin_memory=pin_memory,
        prefetch=prefetch,
        pad_on_device=pad_on_device,
        seed=seed,
    )
    if out is not None:
        check_target(out)
    settings: dict[str, Any] = {
        "buckets": buckets,
        "bucket_edges": edges,
        "edges_by": edges_by,
        "rows": rows,
        "token_budget": token_budget,
        "max_length": max_length,
        "overflow": overflow,
        "length_multiple": length_multiple,
    }
    found = _measured(
        lengths,
        user,
        users,
        settings=settings,
        model=model,
        strategies=strategy,
        device=device,
        execution=execution,
        sequences=DEFAULT_SEQUENCES if sequences is None else sequences,
    )
    _answer(found, out, as_json=as_json)


def _answer(report: MeasureReport, out: Path | None, *, as_json: bool) -> None:
    """Keep and print what there is; the exit code says whether it is all, and whether it is anything.

    Raises:
        typer.Exit: it was interrupted; LabkitError: no strategy could be measured.
    """
    from labkit.views.measure_text import measure_text

    if out is not None:
        report.save(out)
    print_result(as_json, report.to_dict, lambda: measure_text(report))
    if report.cancelled:
        raise typer.Exit(INTERRUPTED)
    if not any(record.timed for record in report.strategies):
        first = report.strategies[0]
        raise LabkitError(f"no strategy could be measured; {first.strategy}: {first.reason['epoch_s']}")


def _measured(lengths: str, user: str | None, users: str | None, **asked: Any) -> MeasureReport:
    """Read the lengths, perhaps those of a tuned JSON, and run the job that was asked for in a child.

    Raises:
        typer.Exit: interrupted before there was any record.
    """
    from labkit.experiments.measure_child import ChildRun
    from labkit.experiments.measure_report import MeasureReport
    from labkit.experiments.measure_request import job_of
    from labkit.experiments.source import open_source, open_tuned

    tuned = open_tuned(lengths, user, users)
    histogram = open_source(lengths if tuned is None else tuned.length_histogram, user, users)
    job = job_of(histogram, tuned=None if tuned is None else tuned.batch_policy, **asked)
    run = ChildRun(job)
    try:
        _follow(run)
        is_whole = True
    except KeyboardInterrupt:
        is_whole = False
        done = sum(record.timed for record in run.records)
        were = "was" if len(job.policies) == 1 else "were"
        asked_for = counted(len(job.policies), "strategy")
        typer.echo(f"labkit: cancelled; {done} of {asked_for} {were} measured", err=True)
        if not run.records:
            raise typer.Exit(INTERRUPTED) from None
    return MeasureReport.of(run.records, job.data_note, job.settings, cancelled=not is_whole)


def _follow(run: ChildRun) -> None:
    """Run to the end, with progress where a person watches; the child ends first, whatever happens."""
    from labkit.experiments.measure_job import Progress

    try:
        with _shown_progress() as show:
            for event in run:
                if isinstance(event, Progress):
                    show(event)
    finally:
        run.cancel()


@contextmanager
def _shown_progress() -> Iterator[Callable[[Progress], None]]:
    """A line on stderr: which strategy of how many, and its seconds."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"))
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("starting", total=None, done="")

        def show(event: Progress) -> None:
            title = f"{event.index + 1}/{event.of} {event.strategy}"
            done = f"{counted(event.steps, 'step')}, {event.seconds:.1f} s" if event.steps else "warming up"
            share = None if event.total_s is None else min(event.seconds, event.total_s)
            bars.update(bar, description=title, completed=share or 0, total=event.total_s, done=done)

        yield show
