"""The commands about edges of other tools: score them, write them."""

from __future__ import annotations

from labkit.cli import options as given
from labkit.cli.commands import app
from labkit.cli.printing import print_result


@app.command("score-edges")
def score(
    lengths: given.Lengths,
    file: given.EdgeFile,
    format: given.EdgeFormatOf,  # noqa: A002
    max_length: given.MaxLength = None,
    user: given.User = None,
    users: given.Users = None,
    as_json: given.AsJson = False,
) -> None:
    """What the bucket edges of another tool waste on these lengths, beside the best of the same number.

    FILE is JSON: duration bins of Lhotse or NeMo, boundaries of tf.data, or CUDA graph capture sizes.
    """
    from labkit.experiments.score_edges import score_edges, score_report, score_text
    from labkit.experiments.source import open_source
    from labkit.interchange.files import read_edges

    foreign = read_edges(file, format)
    found = score_edges(open_source(lengths, user, users), foreign, max_length)
    print_result(as_json, lambda: score_report(found), lambda: score_text(found))


@app.command()
def convert(
    tuned: given.TunedFile, to: given.TargetFormat, out: given.TargetFile, as_json: given.AsJson = False
) -> None:
    """Write the edges and rows of a tuned JSON for another tool, and say what its file cannot hold."""
    from labkit.config.tuned import TunedConfig
    from labkit.interchange.files import write_edges

    policy = TunedConfig.load(tuned).batch_policy
    lost = write_edges(policy, out, to)
    note = f"; not in the file: {', '.join(lost)}" if lost else ""
    print_result(
        as_json,
        lambda: {"format": str(to), "out": str(out), "not_carried": list(lost)},
        lambda: f"written to {out}{note}",
    )
