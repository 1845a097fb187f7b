"""Make the tables, print them, keep the JSON, and fail when a bar is missed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from labkit.errors import LabkitError
from labkit.files import check_target, write_whole
from tests.benchmarks.environment import environment
from tests.benchmarks.peers.tables import Table, markdown
from tests.benchmarks.table import progress

MISSED, MISUSED = 1, 2
PEERS = ("pandas", "lhotse", "transformers", "trl", "speechbrain", "torch", "datasets", "pyarrow", "scipy")


def main(tables: Mapping[str, Callable[[bool], Table]], arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 all bars met, 1 one missed, 2 wrong arguments."""
    options = _parser(tables).parse_args(arguments)
    if options.json:
        try:
            check_target(options.json)
        except LabkitError as error:
            print(error, file=sys.stderr)
            return MISUSED
    stamp = environment(("labkit", "numpy"))
    peers = {name: _version(name) for name in PEERS}
    for line in (stamp, peers):
        print("  ".join(f"{key} {value}" for key, value in line.items()), end="\n\n")
    made = {}
    for name in options.only or tables:
        progress(f"{name} ...")
        made[name] = tables[name](options.quick)
        print("\n".join(markdown(made[name])), end="\n\n", flush=True)
    if options.json:
        record = {"environment": stamp, "peers": peers, "quick": options.quick}
        record["tables"] = {name: table.to_dict() for name, table in made.items()}
        write_whole(options.json, json.dumps(record, indent=2, allow_nan=False) + "\n")
    print(verdict(made))
    return 0 if passed(made) else MISSED


def passed(made: Mapping[str, Table]) -> bool:
    """Whether each table has a bar and none is missed."""
    return all(table.bars and not table.missed for table in made.values())


def verdict(made: Mapping[str, Table]) -> str:
    """The last line."""
    if passed(made):
        return f"all {sum(table.bars for table in made.values())} bars met"
    parts = [
        f"{name} {table.missed} of {table.bars}" if table.bars else f"{name}: nothing to compare with"
        for name, table in made.items()
        if table.missed or not table.bars
    ]
    return f"missed: {', '.join(parts)}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _parser(tables: Mapping[str, Callable[[bool], Table]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(tables), help="one table; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer sequences and repeats: to try it out, not to judge")
    parser.add_argument("--json", metavar="FILE", help="write every figure, the versions and the environment there")
    return parser
