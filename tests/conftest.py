"""Settings of every test run: the Hypothesis profile, and a failure when a run had nothing to run."""

from __future__ import annotations

import os

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
