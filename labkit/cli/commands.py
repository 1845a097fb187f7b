"""The commands: each hands what was parsed to one function below and prints what it returns, as text or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import typer

from labkit.batching.strategies import Strategy
from labkit.cli import options as given
from labkit.cli.printing import print_result as _print
from labkit.errors import NotebookError
from labkit.files import expanded
from labkit.units import shown

app = typer.Typer(
    name="labkit",
    add_completion=False,
    pretty_exceptions_enable=False,
    help="What do ragged sequences cost on a GPU, and which way of batching them should you ship?",
)


@app.command()
def doctor(as_json: given.AsJson = False) -> None:
    """What this machine can do, and why not. The exit code is always 0."""
    from labkit.experiments.doctor import diagnose, doctor_text

    checks = diagnose()
    _print(as_json, lambda: {"checks": [asdict(check) for check in checks]}, lambda: doctor_text(checks))


@app.command("what-if")
def what_if(
    lengths: given.Lengths,
    strategy: given.Strategies = None,
    buckets: given.Buckets = None,
    edges_by: given.By = None,
    quantiles: given.Quantiles = None,
    edges: given.Edges = None,
    edge_cost: given.EdgeCost = None,
    rows: given.Rows = None,
    token_budget: given.TokenBudget = None,
    max_rows: given.MaxRows = None,
    max_length: given.MaxLength = None,
    overflow: given.OverflowBy = None,
    oversize: given.OversizeBy = None,
    pad_to: given.Padding = None,
    row_multiple: given.RowMultiple = None,
    length_multiple: given.LengthMultiple = None,
    capacity: given.Capacity = None,
    max_sequences_per_pack: given.MaxSequencesPerPack = None,
    model: given.ModelKey = None,
    gpu: given.GpuName = None,
    train: given.Training = None,
    precision: given.PrecisionKey = None,
    user: given.User = None,
    users: given.Users = None,
    as_json: given.AsJson = False,
) -> None:
    """What every strategy costs on these lengths, side by side.

    LENGTHS may be a tuned JSON: its histogram is scored, and its settings take the place of the defaults. So do its
    edges, unless one of --edges, --edges-by, --quantiles, --buckets is given. With --model, launches, kernels and peak
    memory are modelled too, and with --gpu the time of an epoch and what rules it.
    """
    from labkit.experiments.source import open_source, open_tuned
    from labkit.experiments.what_if_report import report
    from labkit.experiments.what_if_run import lineup_of, model_choice, run
    from labkit.views.what_if_text import what_if_text

    settings = {
        "buckets": buckets,
        "edges_by": edges_by,
        "quantiles": quantiles,
        "bucket_edges": edges,
        "edge_cost": edge_cost,
        "rows": rows,
        "token_budget": token_budget,
        "max_rows": max_rows,
        "max_length": max_length,
        "overflow": overflow,
        "oversize": oversize,
        "pad_to": pad_to,
        "row_multiple": row_multiple,
        "length_multiple": length_multiple,
        "capacity": capacity,
        "max_sequences_per_pack": max_sequences_per_pack,
    }
    lineup_of(settings)  # contradictions come before a long read
    mode = None if train is None else "train" if train else "inference"
    choice = model_choice(model, gpu, mode=mode, precision=precision)
    tuned = open_tuned(lengths, user, users)
    histogram = open_source(lengths if tuned is None else tuned.length_histogram, user, users)
    policy = None if tuned is None else tuned.batch_policy
    scored = run(histogram, settings, strategy or tuple(Strategy), policy, choice)
    _print(as_json, lambda: report(histogram, scored.what_ifs, scored.modelled, choice), lambda: what_if_text(scored))


@app.command()
def tune(
    lengths: given.Lengths,
    out: given.TunedOut,
    max_buckets: given.MaxBuckets = None,
    token_budget: given.TokenBudget = None,
    max_events_lost: given.MaxEventsLost = None,
    length_multiple: given.LengthMultiple = None,
    strategy: given.TuneStrategy = None,
    edge_cost: given.EdgeCost = None,
    charge_per_bucket: given.ChargePerBucket = None,
    user: given.User = None,
    users: given.Users = None,
    as_json: given.AsJson = False,
) -> None:
    """Find the buckets with the fewest slots within a share of events lost, and write them for a training job.

    On other lengths what is above the last edge loses the oldest events, with a warning.
    """
    from labkit.config.reading import check_tuned_target
    from labkit.experiments.source import open_source
    from labkit.experiments.tune import Limits, tune_report
    from labkit.experiments.tune import tune as search
    from labkit.views.what_if_text import tune_text

    chosen: dict[str, Any] = {
        "max_buckets": max_buckets,
        "token_budget": token_budget,
        "max_events_lost": max_events_lost,
        "length_multiple": length_multiple,
        "strategy": strategy,
        "edge_cost": edge_cost,
        "charge_per_bucket": charge_per_bucket,
    }
    limits = Limits(**{name: value for name, value in chosen.items() if value is not None})
    target = check_tuned_target(out)
    found = search(open_source(lengths, user, users), limits)
    tuned = found.tuned_config()
    tuned.save(target)
    _print(as_json, lambda: tune_report(found, tuned, target), lambda: tune_text(found, str(target)))


@app.command()
def run(
    notebook: given.Notebook,
    out: given.RunOut,
    parameter: given.Parameters = None,
    as_json: given.AsJson = False,
) -> None:
    """Run a notebook headless. Unknown or ill-typed parameters fail before its kernel starts."""
    from labkit.nbrun import run_notebook

    parameters: dict[str, Any] = {}
    for pair in parameter or ():
        name, _, value = pair.partition("=")
        if name in parameters:
            raise NotebookError(f"parameter {shown(name)} is given twice: leave one out.")
        parameters[name] = value
    result = run_notebook(expanded(notebook), parameters, expanded(out), on_progress=_cell_counter())
    _print(as_json, result.to_dict, lambda: f"{result.cells} cells in {result.seconds:.1f} s: {result.notebook}")


def _cell_counter() -> Callable[[int, int], None] | None:
    """A line on stderr that counts cells, where a person watches."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        typer.echo(f"\rcell {done}/{total}", err=True, nl=done == total)

    return show
