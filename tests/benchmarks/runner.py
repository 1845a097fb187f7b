"""Run the benchmarks, print one table, keep the JSON, and fail when a bar is missed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from labkit.errors import LabkitError
from labkit.files import check_target, write_whole
from tests.benchmarks.environment import environment
from tests.benchmarks.model import Benchmark, Outcome
from tests.benchmarks.table import lines, progress

MISSED, MISUSED = 1, 2


def main(benchmarks: Sequence[Benchmark], arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 all bars met, 1 a bar missed or a benchmark broken, 2 wrong arguments."""
    options = _parser(benchmarks).parse_args(arguments)
    if options.json:
        try:
            check_target(options.json)
        except LabkitError as error:
            print(error, file=sys.stderr)
            return MISUSED
    chosen = [b for b in benchmarks if not options.only or b.name in options.only]
    stamp = environment()
    print("  ".join(f"{key} {value}" for key, value in stamp.items()))
    outcomes = [_run(benchmark, options.quick) for benchmark in chosen]
    print("\n".join(lines(outcomes)))
    if options.json:
        record = {"environment": stamp, "quick": options.quick, "benchmarks": [o.to_dict() for o in outcomes]}
        write_whole(options.json, json.dumps(record, indent=2, allow_nan=False) + "\n")
    return 0 if all(outcome.ok for outcome in outcomes) else MISSED


def _run(benchmark: Benchmark, quick: bool) -> Outcome:
    """A benchmark that raises has missed its bar; the others still run."""
    progress(f"{benchmark.name}: {benchmark.what} ...")
    try:
        return Outcome(benchmark, benchmark.run(quick))
    except Exception as error:
        return Outcome(benchmark, None, " ".join(f"{type(error).__name__}: {error}".split()))


def _parser(benchmarks: Sequence[Benchmark]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    names = [b.name for b in benchmarks]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: to try it out, not to judge")
    parser.add_argument("--json", metavar="FILE", help="write every sample and the environment there")
    return parser
