"""Notebook 01 on the page: its result as a summary, a table, two figures and two files."""

from __future__ import annotations

import html
from pathlib import Path

from labkit.experiments.environment import environment_stamp
from labkit.experiments.tune_buckets import GENERATED, Config, Result
from labkit.files import write_whole
from labkit.views.dataset_summary import Summary
from labkit.views.histogram_figure import histogram_figure
from labkit.views.notebook_figure import NotebookFigure
from labkit.views.ranking_figure import ranking_figure
from labkit.views.strategy_table import StrategyTable


def summary(result: Result) -> Summary:
    """The data set in one line."""
    return Summary(result.histogram, data_name(result.config))


def table(result: Result) -> StrategyTable:
    """All strategies, with the figures of the model where one is chosen."""
    return StrategyTable(result.board.scores, result.board.choice)


def lengths_figure(result: Result) -> NotebookFigure:
    """The histogram with its edges."""
    edges = () if result.board.edges is None else result.board.edges.edges
    figure = histogram_figure(result.histogram, edges, result.config.max_length)
    return NotebookFigure(figure, f"histogram of the lengths, bucket edges {', '.join(map(str, edges))}")


def ranking(result: Result) -> NotebookFigure:
    """The picture that ranks the strategies."""
    return NotebookFigure(ranking_figure(result.board.scores), "strategies ranked by slots per event")


def save_report(result: Result, folder: str | Path) -> list[Path]:
    """Write ``tuned.json`` and ``strategies.html`` (table and figures, one page that needs no network) into a folder.

    Returns:
        Both paths.

    Raises:
        PolicyError: the chosen strategy does not fit these lengths; DataFileError: the folder cannot be written to.
    """
    tuned = result.save(folder)
    first, second = lengths_figure(result).html(with_library=True), ranking(result).html(with_library=False)
    title = html.escape(f"labkit: {data_name(result.config)}")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        '<body style="font:15px system-ui,sans-serif;max-width:1080px;margin:24px auto;padding:0 16px">'
        f"<h1>{title}</h1>{summary(result)._repr_html_()}{first}{table(result).html()}{second}"
        f"<p>{html.escape(result.finding)}</p><p><small>{environment_stamp()}</small></p></body></html>"
    )
    return [tuned, write_whole(tuned.with_name("strategies.html"), page)]


def data_name(config: Config) -> str:
    """What to call the data set of a config."""
    if config.lengths_file is not None:
        return Path(config.lengths_file).name
    if config.preset == GENERATED:
        return f"generated, α = {config.alpha:g}"
    return config.preset
