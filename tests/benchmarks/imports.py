"""``import labkit`` against ``import numpy``, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import in_turns, repeat


def fresh(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def run(quick: bool) -> Measurement:
    repeats = 5 if quick else 21
    pairs = in_turns(fresh("import labkit"), fresh("import numpy"), repeats, warm_up=2)
    bare = repeat(fresh("pass"), repeats)
    own, reference = (pairs.own.median - bare.median, pairs.reference.median - bare.median)
    detail = (
        f"whole runs of python -c, nothing subtracted; an empty run takes {bare.median * 1e3:.1f} ms, so the imports "
        f"alone are about {own * 1e3:.1f} and {reference * 1e3:.1f} ms"
    )
    return Measurement.of_pairs(pairs, detail)


BENCHMARK = Benchmark("import", "import labkit against import numpy", Bar(2), run)
