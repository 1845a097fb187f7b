from labkit.batching.what_if import FIGURES
from labkit.views.columns import COLUMNS


def test_every_column_carries_the_origin_of_a_figure_that_exists():
    assert {c.figure for c in COLUMNS} <= set(FIGURES)
    assert len({c.header for c in COLUMNS}) == len(COLUMNS)
