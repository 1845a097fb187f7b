"""The DIN experiment as a table: what others published, and beside it ours, each group with its own origin."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass

from labkit.experiments.din_experiment import UNSAID, DinExperiment, DinWay
from labkit.provenance import Figure, Origin
from labkit.units import format_bytes, format_count, format_share
from labkit.views.badges import BADGES
from labkit.views.prose import Prose
from labkit.views.table_style import STYLE
from labkit.views.what_if_text import MARKS, aligned

_ABSENT = "–"
_PUBLISHED = "published"
_NOTE = "times are relative to the first way"
_NO_DEVICE = "figures of others; the source gives no device"


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of the table.

    Attributes:
        group: ``published``, or its origin: where it stands.
        header: of its column.
        text: as written; None where there is none.
        origin: None for what was published.
        why: how it came to be, or why there is none.
    """

    group: str
    header: str
    text: str | None
    origin: Origin | None
    why: str


@dataclass(frozen=True, slots=True)
class DinTable:
    """The three ways, one a row: HTML in a notebook, aligned text elsewhere.

    Attributes:
        found: the experiment.
    """

    found: DinExperiment

    def rows(self) -> list[tuple[DinWay, list[Cell]]]:
        """The cells of each way."""
        model, measured = self.found.relative_model(), self.found.relative_measured()
        return [
            (way, [*_published(way), *_exact(way), *_modelled(way, m), *_measured(way, t)])
            for way, m, t in zip(self.found.ways, model, measured, strict=True)
        ]

    def titles(self) -> dict[str, str]:
        """What each group is of."""
        records = [way.here.record for way in self.found.ways if way.here.record is not None]
        return {
            _PUBLISHED: _NO_DEVICE,
            Origin.EXACT: "counted in the plans",
            Origin.MODELLED: self.found.choice.title,
            Origin.MEASURED: records[0].device if records else "nothing was",
        }

    def _repr_html_(self) -> str:
        rows = self.rows()
        cells = rows[0][1]
        groups = "".join(
            f'<th colspan="{sum(c.group == group for c in cells)}" scope="colgroup"><b>{group}</b> '
            f"{html.escape(title)}</th>"
            for group, title in self.titles().items()
        )
        heads = "".join(f"<th{_first(cells, i)}>{c.header}</th>" for i, c in enumerate(cells))
        body = "".join(
            f"<tr><th>{html.escape(way.title)}</th>{''.join(_html(own, i) for i in range(len(own)))}</tr>"
            for way, own in rows
        )
        return (
            f'{STYLE}<div class="labkit-table-box"><table class="labkit-table wide labkit-din"><thead>'
            f'<tr class="groups"><td></td>{groups}</tr><tr><th>way</th>{heads}</tr></thead>'
            f'<tbody>{body}</tbody></table><p class="labkit-legend labkit-table">{_NOTE}</p></div>'
        )

    def __repr__(self) -> str:
        rows = self.rows()
        header = ["way", *(f"{c.group} {c.header}" for c in rows[0][1])]
        lines = aligned([header, *([way.title, *map(_text, cells)] for way, cells in rows)])
        titles = [f"{group}: {title}" for group, title in self.titles().items()]
        return "\n".join([*lines, _NOTE, *titles])


def din_prose(found: DinExperiment) -> Prose:
    """Where theirs and ours differ, and what the description leaves open."""
    return Prose((found.finding,), "The description does not say:", UNSAID)


def _published(way: DinWay) -> list[Cell]:
    told = way.published
    texts = {
        "time": f"{told.relative_time:.2f}",
        "utilization": format_share(told.utilization),
        "memory": format_bytes(told.memory_bytes),
    }
    return [Cell(_PUBLISHED, header, text, None, _NO_DEVICE) for header, text in texts.items()]


def _exact(way: DinWay) -> list[Cell]:
    audit, why = way.here.audit, way.here.error or "counted in the plan of one epoch"
    texts: dict[str, str | None] = {"padding": None, "batches": None, "events lost": None}
    if audit is not None:
        found = (format_share(audit.padding_ratio), format_count(audit.batches), format_share(audit.lost_share))
        texts = dict(zip(texts, found, strict=True))
    return [Cell(Origin.EXACT, header, text, Origin.EXACT, why) for header, text in texts.items()]


def _modelled(way: DinWay, relative: float | None) -> list[Cell]:
    group, found = Origin.MODELLED, way.here.modelled
    if found is None:
        why = way.here.error or "not modelled"
        return [Cell(group, header, None, None, why) for header in ("time", "busy", "bound", "peak")]
    bound = None if found.bound is None else str(found.bound)
    return [
        _relative(group, relative, found.figures["time_s"]),
        _cell(group, "busy", found.figures["utilization"], format_share),
        Cell(group, "bound", bound, Origin.MODELLED, found.bound_reason),
        _cell(group, "peak", found.figures["peak_bytes"], format_bytes),
    ]


def _measured(way: DinWay, relative: float | None) -> list[Cell]:
    group, record = Origin.MEASURED, way.here.record
    if record is None:
        why = str(way.here.measure_refusal)
        return [Cell(group, header, None, None, why) for header in ("time", _busy(way), "peak")]
    return [
        _relative(group, relative, record.figures["epoch_s"]),
        _cell(group, _busy(way), record.figures["utilization"], format_share),
        _cell(group, "peak", record.figures["peak_bytes"], format_bytes),
    ]


def _busy(way: DinWay) -> str:
    """What utilization is on the device: a CPU has no kernels, but cores."""
    record = way.here.record
    return "cpu share" if record is not None and record.device.startswith("cpu") else "utilization"


def _relative(group: str, value: float | None, of: Figure) -> Cell:
    return Cell(group, "time", None if value is None else f"{value:.2f}", of.origin, of.reason or "")


def _cell(group: str, header: str, figure: Figure, write: Callable[[float], str]) -> Cell:
    text = None if figure.value is None else write(figure.value)
    return Cell(group, header, text, figure.origin, figure.reason or "")


def _first(cells: list[Cell], number: int) -> str:
    """The attribute of the first cell of a group, which has a line on its left."""
    starts = number == 0 or cells[number - 1].group != cells[number].group
    return ' class="first"' if starts else ""


def _html(cells: list[Cell], number: int) -> str:
    cell, why = cells[number], html.escape(cells[number].why)
    badge = "" if cell.origin is None or cell.text is None else BADGES[cell.origin][0]
    mark = f'<sup class="{cell.origin}" title="{why}">{badge}</sup>' if badge else ""
    data = f'data-group="{cell.group}" data-figure="{cell.header}"'
    return f'<td {data}{_first(cells, number)} title="{why}">{cell.text or _ABSENT}{mark}</td>'


def _text(cell: Cell) -> str:
    if cell.text is None:
        return _ABSENT
    return cell.text if cell.origin is None else MARKS[cell.origin][0] + cell.text
