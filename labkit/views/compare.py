"""Notebook 03 on the page: its result as a table, a picture, the DIN experiment, a diagnosis and three files."""

from __future__ import annotations

import html
from pathlib import Path

from labkit.experiments.compare import Result
from labkit.experiments.diagnosis import diagnose
from labkit.experiments.environment import environment_stamp
from labkit.experiments.next_bound import next_bound
from labkit.experiments.time_split import MEASURED_ON_CPU_IS, MEASURED_ON_GPU_IS, MODELLED_IS
from labkit.files import made_folder, write_whole
from labkit.units import format_count
from labkit.views.compare_columns import Group
from labkit.views.compare_table import CompareTable
from labkit.views.dataset_summary import Summary
from labkit.views.diagnosis_table import DiagnosisTable, next_bound_table
from labkit.views.din_table import DinTable, din_prose
from labkit.views.notebook_figure import NotebookFigure
from labkit.views.plain_progress import PlainProgress as PlainProgress
from labkit.views.plain_table import PlainTable
from labkit.views.prose import Prose
from labkit.views.time_split_figure import time_split_figure

_ORDER = "sorted by the modelled time of an epoch, what does not fit after what fits, then by the measured one"
#: JupyterLab's colours for a page outside of it, in the theme of the reader.
_THEME = (
    "<style>:root { color-scheme: light dark; --jp-layout-color0: Canvas; --jp-layout-color1: Canvas; "
    "--jp-ui-font-color1: CanvasText; --jp-ui-font-color2: light-dark(#666, #aaa); "
    "--jp-error-color1: light-dark(#b32d00, #ff8a65); }</style>"
)
_NO_DIN = "the DIN experiment was left out (din = False)"


def summary(result: Result) -> Summary:
    """The lengths that were compared, in one line."""
    config = result.config
    name = config.preset if config.lengths_file is None else Path(config.lengths_file).name
    if result.of_sequences is not None and result.of_sequences > result.histogram.sequences:
        name = f"{name}, sampled from {format_count(result.of_sequences)} sequences"
    if result.is_recorded:
        name = f"{name}, as in {Path(str(config.records_file)).name}"
    return Summary(result.histogram, name)


def table(result: Result) -> CompareTable:
    """Every strategy: exact, modelled and measured side by side."""
    titles = {
        Group.EXACT: f"one epoch planned, seed {result.config.seed}",
        Group.MODELLED: result.choice.title,
        Group.MEASURED: measured_title(result),
    }
    return CompareTable(result.rows, titles, _ORDER)


def measured_title(result: Result) -> str:
    """What was measured, where and when."""
    report = result.report
    if report is None:
        return "nothing: no device was asked for"
    if not result.is_recorded:
        return f"{report.model} on {report.device}"
    known = report.environment
    when = f"{known.get('time', 'no date')}, commit {known.get('commit', 'unknown')}"
    return f"recorded: {report.model} on {report.device}, {when}"


def time_split(result: Result) -> NotebookFigure:
    """Where the time of an epoch goes."""
    measured = "measured" if not result.is_recorded else "recorded"
    device = "" if result.report is None else result.report.device
    figure = time_split_figure(result.rows, f"modelled: {result.choice.title}", f"{measured}: {device}")
    return NotebookFigure(figure, "time of an epoch split into useful work, padding and gap")


def split_note(result: Result) -> Prose:
    """What exactly the parts of the picture are."""
    if result.report is None:
        return Prose((MODELLED_IS,))
    on_gpu = result.config.device not in (None, "cpu")
    return Prose((MODELLED_IS, MEASURED_ON_GPU_IS if on_gpu else MEASURED_ON_CPU_IS))


def din(result: Result) -> DinTable | Prose:
    """The DIN experiment, published and here."""
    return Prose((_NO_DIN,)) if result.din is None else DinTable(result.din)


def din_finding(result: Result) -> Prose:
    """Where theirs and ours differ, and what their description leaves open."""
    return Prose((_NO_DIN,)) if result.din is None else din_prose(result.din)


def diagnosis(result: Result) -> DiagnosisTable:
    """The symptoms that apply."""
    return DiagnosisTable(diagnose(result.rows, result.choice.gpu))


def next_step(result: Result) -> PlainTable:
    """What would have to change for the fastest strategy to reach another bound."""
    fastest, gpu = result.rows[0], result.config.gpu
    found = None if fastest.policy is None else next_bound(fastest.policy, result.histogram, result.choice)
    return next_bound_table(found, str(fastest.strategy), gpu)


def calibration(result: Result) -> Prose:
    """What the fit of the overheads left over."""
    if not result.calibration:
        return Prose(("not calibrated: the overheads are assumed (calibrate = True fits them)",))
    return Prose((), "Fitted on the device at hand:", result.calibration)


def finding(result: Result) -> Prose:
    """The result in a sentence."""
    return Prose((result.finding,))


def save_report(result: Result, folder: str | Path) -> list[Path]:
    """Write the table (with the DIN experiment and the diagnosis), the picture, and the records of a new run.

    Returns:
        ``compare_table.html``, ``time_split.html`` and, where something was measured, ``records.json``.

    Raises:
        DataFileError: the folder cannot be made or written to.
    """
    target = made_folder(folder)
    fastest = html.escape(str(result.rows[0].strategy))
    change = f"<p>What would have to change for {fastest} so that something else rules its time:</p>"
    parts = [
        *("<h2>Every strategy</h2>", table(result).html()),
        *(
            "<h2>Which bound rules, and what to do</h2>",
            diagnosis(result)._repr_html_(),
            change + next_step(result)._repr_html_(),
        ),
    ]
    if result.din is not None:
        parts += [
            "<h2>The DIN experiment</h2>",
            DinTable(result.din)._repr_html_(),
            din_prose(result.din)._repr_html_(),
        ]
    picture = time_split(result).html(with_library=True) + split_note(result)._repr_html_()
    written = [
        write_whole(target / "compare_table.html", _page(result, "".join(parts))),
        write_whole(target / "time_split.html", _page(result, picture)),
    ]
    if result.stored is None or result.is_recorded:
        return written
    return [*written, result.stored.save(target / "records.json")]


def _page(result: Result, body: str) -> str:
    """One page that needs no network and follows the theme of the reader."""
    title = html.escape(f"labkit: {result.choice.title}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"{_THEME}</head>"
        '<body style="font:15px system-ui,sans-serif;max-width:1280px;margin:24px auto;padding:0 16px">'
        f"<h1>{title}</h1>{summary(result)._repr_html_()}{body}<p>{html.escape(result.finding)}</p>"
        f"<p><small>{environment_stamp()}</small></p></body></html>"
    )
