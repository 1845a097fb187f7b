from __future__ import annotations

import pytest

from labkit.widgets.sortable_table import SortableTable

CELL = '<tr data-strategy="s{0}"><td data-value="{1}" title="long enough to be worth sparing">{1}<sup>e</sup></td></tr>'


def table(*values: int) -> str:
    return "<table>" + "".join(CELL.format(i, value) for i, value in enumerate(values)) + "</table>"


def test_a_few_changed_numbers_travel_as_the_tags_that_differ() -> None:
    shown = SortableTable()
    shown.value = table(*range(10))
    assert (shown.base, shown.patch) == (table(*range(10)), {})
    changed = table(0, 1, 2, 33, *range(4, 10))
    shown.value = changed
    assert shown.base == table(*range(10))
    assert shown.patch == {"21": '<td data-value="33" title="long enough to be worth sparing">33'}
    assert shown.value == changed
    shown.value = table(*range(10))
    assert shown.patch == {}


@pytest.mark.parametrize("other", [table(1, 2), table(*range(100, 110)), ""], ids=["fewer", "all changed", "nothing"])
def test_another_table_travels_whole(other: str) -> None:
    shown = SortableTable()
    shown.value = table(*range(10))
    shown.value = table(0, 1, 2, 33, *range(4, 10))
    shown.value = other
    assert (shown.base, shown.patch, shown.value) == (other, {}, other)
