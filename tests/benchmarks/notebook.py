"""The tuning notebook from the command line, as CI and ``make report`` run it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.environment import ROOT
from tests.benchmarks.model import Bar, Benchmark, Measurement
from tests.benchmarks.timing import repeat

NOTEBOOK = ROOT / "notebooks" / "01_tune_buckets.ipynb"


def run(quick: bool) -> Measurement:
    if not NOTEBOOK.is_file():
        raise FileNotFoundError(f"notebooks/{NOTEBOOK.name} is not there")
    with tempfile.TemporaryDirectory(prefix="labkit-benchmark-") as folder:
        samples = repeat(lambda: run_notebook(Path(folder)), repeats=1 if quick else 3, warm_up=0)
        if not (Path(folder) / "tuned.json").is_file():
            raise AssertionError("the run left no tuned.json")
    return Measurement("s", samples, "labkit run with the notebook's own parameters, a fresh process each time")


def run_notebook(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("labkit")), "run", str(NOTEBOOK), "--out", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"labkit run ended with {done.returncode}: {done.stderr.strip()[-300:]}")


BENCHMARK = Benchmark("notebook", "papermill run of notebook 01", Bar(60, "s"), run)
