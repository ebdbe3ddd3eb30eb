"""A pytest plugin whose last line counts the tests that were skipped, by reason. With `--no-skips` such a run has failed.

For CI: a test that does not run promises nothing. A test that is expected to fail does not either.
"""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skips")
    group.addoption("--no-skips", action="store_true", help="fail if a test is skipped or expected to fail")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Watch(config))


class _Watch:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._refuses: bool = config.option.no_skips
        self._refused: list[str] = []
        self._reasons = Counter[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or hasattr(report, "wasxfail"):
            self._refused.append(report.nodeid)
        if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
            self._reasons[report.longrepr[2].removeprefix("Skipped: ").partition("\n")[0]] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if self._refuses and report.skipped:  # pytest-xdist reports only failures of the collection in its processes
            report.outcome = "failed"
            report.longrepr = f"not allowed here: {report.nodeid} was skipped"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._refuses and self._refused and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._refuses:
            for name in self._refused:
                terminalreporter.write_line(f"not allowed here: {name} was skipped or expected to fail", red=True)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._reasons:
            told = ", ".join(f"{count} because {reason}" for reason, count in self._reasons.most_common())
            reporter.write_line(f"skipped: {told}", yellow=True)
