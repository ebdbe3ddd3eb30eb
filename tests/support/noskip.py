"""A pytest plugin (`-p tests.support.noskip`) under which a run that skips anything, or expects a failure, has failed.

For CI: a test that does not run promises nothing.
"""

from __future__ import annotations

import pytest

_SKIPPED = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SKIPPED] = []
    config.pluginmanager.register(_Watch(config.stash[_SKIPPED]))


class _Watch:
    def __init__(self, skipped: list[str]) -> None:
        self._skipped = skipped

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or hasattr(report, "wasxfail"):
            self._skipped.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:  # pytest-xdist reports only failures of the collection in its processes
            report.outcome = "failed"
            report.longrepr = f"not allowed here: {report.nodeid} was skipped"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.OK and session.config.stash[_SKIPPED]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in terminalreporter.config.stash[_SKIPPED]:
        terminalreporter.write_line(f"not allowed here: {name} was skipped or expected to fail", red=True)
