"""Exit codes, one line where nothing can be done, what is imported, and a case that hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.cli import main as labkit
from labkit.gpu_check import command
from labkit.gpu_check.command import main
from tests.gpu_check.small import small_lab

ROOT = Path(__file__).parents[2]

#: What a machine with nothing but Python, NumPy, torch and CuPy lacks.
ABSENT = ("anywidget", "duckdb", "ipywidgets", "pandas", "papermill", "plotly", "psutil", "pydantic", "pynvml", "rich",
          "typer")  # fmt: skip

#: As if they were not there: found by nobody who looks.
_BLOCK = """
from importlib.machinery import PathFinder
real = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.split(".")[0] in ABSENT else real(name, *rest)
"""

_RUN = """
from pathlib import Path
from labkit.gpu_check.command import check, main
from labkit.gpu_check.items.order import ITEMS
from tests.gpu_check.small import small_lab
assert main(["--json", "gpu-check.json"]) == 3
# on a CPU the strategies read the load of the processor, for which psutil is needed; on a GPU they do not
assert check([item for item in ITEMS if item.key != "strategies"], small_lab(Path(".")), 1000.0) == 0
"""


def without(absent: tuple[str, ...], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that cannot import some packages."""
    program = _BLOCK.replace("ABSENT", repr(absent)) + code
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_python_numpy_torch_and_cupy_are_enough(tmp_path: Path) -> None:
    done = without(ABSENT, _RUN, tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "compute-sanitizer" in done.stdout


def test_that_test_can_fail(tmp_path: Path) -> None:
    done = without(("torch",), _RUN, tmp_path)
    assert done.returncode == 1
    assert "No module named 'torch'" in done.stderr
    assert "No module named 'typer'" in without(ABSENT, "import labkit.cli", tmp_path).stderr


def test_without_a_gpu_one_line_and_exit_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.json"
    assert main(["--json", str(out)]) == command.NO_GPU == 3
    line = capsys.readouterr().err
    assert line.startswith("gpu-check: no GPU to check: torch ")
    assert line.count("\n") == 1
    assert not out.exists()
    assert labkit(["gpu-check", "--json", str(out), "--only", "kernels"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seconds", "0"], "seconds must be a number above 0 and below a million: got '0'"),
        (["--seconds", "abc"], "seconds must be a number above 0 and below a million: got 'abc'"),
        (["--only", "kernel"], "argument --only: invalid choice: 'kernel'"),
        (["--device", "cpu"], "unrecognized arguments: --device cpu"),
    ],
)
def test_bad_words_are_one_line_and_exit_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    line = capsys.readouterr().err
    assert (ended.value.code, line.count("\n")) == (2, 1)
    assert message in line


def test_a_folder_that_is_not_there_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "nowhere/run.json"]) == 2
    assert "folder 'nowhere' does not exist" in capsys.readouterr().err


def test_a_case_that_hangs_is_in_the_report_when_the_watchdog_leaves(tmp_path: Path) -> None:
    lab, left = small_lab(tmp_path), []
    lab.report.begin("kernels", "kernels")
    timer = command._watchdog(0.01, lab.report, lambda: left.append(1))
    timer.start()
    timer.join()
    assert left == [1]
    assert lab.report.cases("kernels")[0]["error"] == "still running after 0 s: it hangs"
    assert lab.report.data["ok"] is False
