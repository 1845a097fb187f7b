"""The stand-in ``libnvidia-ml.so.1``: compiled once, and asked by fresh processes, as a driver would be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("nvml_stand_in.c")
ROOT = SOURCE.parents[2]


def compile_into(folder: Path) -> Path:
    """The folder, with the library in it."""
    compiler = next((found for name in ("cc", "gcc", "g++", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        raise RuntimeError("the tests of NVML need a C compiler: sudo apt-get install gcc")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-x", "c"]
    subprocess.run([compiler, *options, str(SOURCE), "-o", str(folder / "libnvidia-ml.so.1")], check=True)
    return folder


class StandIn:
    """Runs Python with the stand-in library in the place of the driver's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def environment(self, scenario: str = "", **variables: str) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if k not in {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}}
        search = {"LD_LIBRARY_PATH": str(self.folder), "PYTHONPATH": str(ROOT)}
        return {**clean, **search, "NVML_STAND_IN": scenario, **variables}

    def run(self, code: str, scenario: str = "", **variables: str) -> Any:
        """What the code assigns to ``result``, through JSON."""
        script = f"import json, sys\n{code}\njson.dump(result, sys.stdout, default=str)"
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            env=self.environment(scenario, **variables),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
