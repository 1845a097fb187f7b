"""Settings of every test run: the Hypothesis profile, a failure when a run had nothing to run, bad input at the CLI."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run in which every test was skipped, as pytest itself fails one that collected none."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(session.config, "workerinput")
    if is_worker or reporter is None or exitstatus != pytest.ExitCode.OK or session.config.option.collectonly:
        return
    if not reporter.stats.get("passed"):
        reporter.write_line("no test ran: all were skipped", red=True)
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def listing(folder: Path) -> dict[str, bytes]:
    """The files below a folder with their content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in an empty folder (plus the given files); the line it complains with, after all that must hold."""
    from labkit.cli import main  # not at the top: other tests must not pay for it

    monkeypatch.chdir(tmp_path)

    def run(words: str | list[str], prepare: Callable[[Path], object] = lambda _: None) -> str:
        prepare(tmp_path)
        before = listing(tmp_path)
        code = main(words.split() if isinstance(words, str) else words)
        captured = capsys.readouterr()
        assert (code, captured.out) == (2, "")
        assert listing(tmp_path) == before
        assert captured.err.startswith("labkit: ")
        assert captured.err.count("\n") == 1
        assert captured.err.endswith("\n")
        return captured.err.removeprefix("labkit: ").removesuffix("\n")

    return run
