"""No program is left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from labkit.gpu_check import command
from labkit.gpu_check.children import started
from tests.gpu_check.processes import ended
from tests.gpu_check.small import small_lab

_SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_program_ends_with_its_block_whatever_ends_that() -> None:
    with pytest.raises(KeyboardInterrupt), started(_SLEEP) as process:
        raise KeyboardInterrupt
    assert process.returncode == -9


def test_what_a_program_says_and_its_exit_code_are_there() -> None:
    code = "import os, sys; print(os.environ['WORD']); sys.exit(4)"
    with started([sys.executable, "-c", code], {"WORD": "heard"}) as process:
        output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("heard\n", 4)


def test_the_watchdog_leaves_no_program_behind(tmp_path: Path) -> None:
    lab = small_lab(tmp_path)
    with started(_SLEEP) as process:
        timer = command._watchdog(0.01, lab.report, lambda: None)
        timer.start()
        timer.join()
        assert ended(process.pid)
