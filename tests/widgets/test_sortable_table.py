from __future__ import annotations

import pytest

from labkit.widgets.sortable_table import SortableTable

CELL = '<tr data-strategy="s{0}"><td data-value="{1}" title="long enough to be worth sparing">{1}<sup>e</sup></td></tr>'


def table(*values: int) -> str:
    return "<table>" + "".join(CELL.format(i, value) for i, value in enumerate(values)) + "</table>"


def test_a_few_changed_numbers_travel_as_little_more_than_themselves() -> None:
    shown = SortableTable()
    shown.value = table(*range(10))
    assert (shown.base, shown.patch) == (table(*range(10)), {})
    changed = table(0, 1, 2, 33, *range(4, 10))
    shown.value = changed
    assert shown.base == table(*range(10))
    assert list(shown.patch.values()) == ["33", ">33"]
    assert shown.value == changed
    shown.value = table(*range(10))
    assert shown.patch == {}


@pytest.mark.parametrize(
    "other",
    [table(1, 2), table(*range(100, 110)).replace("long", "much longer than"), ""],
    ids=["fewer", "all changed", "nothing"],
)
def test_another_table_travels_whole(other: str) -> None:
    shown = SortableTable()
    shown.value = table(*range(10))
    shown.value = table(0, 1, 2, 33, *range(4, 10))
    shown.value = other
    assert (shown.base, shown.patch, shown.value) == (other, {}, other)


def test_a_mark_that_moves_to_another_row_is_no_other_table() -> None:
    best, other = '<td class="best">1</td>', '<td class="">2</td>'
    shown = SortableTable()
    shown.value = "<table>" + best + other * 9 + "</table>"
    shown.value = "<table>" + other + best + other * 8 + "</table>"
    assert list(shown.patch.values()) == ["", ">2", "best", ">1"]
