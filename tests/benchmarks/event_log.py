"""A Parquet event log to the histogram of its users, against the query alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np

from labkit.lengths.histogram import LengthHistogram
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import in_turns

#: The least that can be asked: events a user, then users a count.
QUERY = """
SELECT n, count(*) AS users FROM (SELECT user_id, count(*) AS n FROM read_parquet(?) GROUP BY user_id) GROUP BY n
"""


def run(quick: bool) -> Measurement:
    rows = 1_000_000 if quick else 20_000_000
    with tempfile.TemporaryDirectory(prefix="labkit-benchmark-") as folder:
        path = Path(folder) / "events.parquet"
        write_events(path, rows)
        found, wanted = LengthHistogram.from_events(path), bare(path)
        np.testing.assert_array_equal(found.values, wanted["n"])
        np.testing.assert_array_equal(found.counts, wanted["users"])
        pairs = in_turns(lambda: LengthHistogram.from_events(path), lambda: bare(path), repeats=5 if quick else 9)
        size = path.stat().st_size
    return Measurement.of_pairs(
        pairs, f"{rows:,} events of {found.sequences:,} users, {size / 1e6:.0f} MB, DuckDB query"
    )


def write_events(path: Path, rows: int) -> None:
    """Events in the order of their time, users drawn from a power law, two columns that nobody reads."""
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT floor({rows // 10} * pow(random(), 3))::BIGINT AS user_id, "
            "range AS time, (random() * 100000)::INTEGER AS item_id "
            f"FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )


def bare(path: Path) -> dict[str, np.ndarray]:
    """The query on a connection of its own, sorted, as the histogram comes."""
    with duckdb.connect() as connection:
        columns = connection.execute(QUERY, [str(path)]).fetchnumpy()
    order = np.argsort(columns["n"])
    return {name: column[order] for name, column in columns.items()}


BENCHMARK = Benchmark("event-log", "Parquet event log against bare DuckDB", Bar(1.2), run)
