"""The commands about edges of other tools: score them, write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labkit.cli import options as given
from labkit.cli.commands import app
from labkit.cli.printing import print_result
from labkit.errors import ConfigError

if TYPE_CHECKING:
    from labkit.config.tuned import TunedConfig


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
    """Write the edges and rows of a tuned JSON for another tool, and say what its file cannot hold.

    A file that is there is overwritten only if it holds edges of the same format.
    """
    from labkit.interchange.files import write_edges

    policy = _loaded(tuned).batch_policy
    lost = write_edges(policy, out, to)
    note = f"; not in the file: {', '.join(lost)}" if lost else ""
    print_result(
        as_json,
        lambda: {"format": str(to), "out": str(out), "not_carried": list(lost)},
        lambda: f"written to {out}{note}",
    )


def _loaded(tuned: Path) -> TunedConfig:
    """The tuned configuration; a YAML file is told what to do, as by ``score-edges``."""
    from labkit.config.tuned import TunedConfig
    from labkit.interchange.json_lists import yaml_hint

    try:
        return TunedConfig.load(tuned)
    except ConfigError as error:
        raise ConfigError(f"{error}{yaml_hint(tuned) if ': not JSON: ' in str(error) else ''}") from None
