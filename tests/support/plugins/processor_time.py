"""A pytest plugin that sums the processor time of each test file, and fails a run with `--budgets` if a file passes its budget.

The time of a test is what its process and all processes below it have spent since the test before: servers are counted while
they run. Processes that a test has detached are not counted. The budgets are in `setup.cfg`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

SHOWN = 10
"""Files, or tests, that the table has."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PROPERTY = "processor_seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("processor time")
    group.addoption("--budgets", action="store_true", help="fail if a test file spends more processor time than its budget")
    group.addoption("--largest", choices=["files", "tests"], default="files", help="list the files or tests that spend the most")
    parser.addini("processor_budget", "Seconds of processor time that the tests of one file may spend.", default="20")
    parser.addini("processor_budgets", "Files with another budget: a path and seconds a line.", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Clock())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Table(config))


def spent() -> float:
    """Return the seconds of processor time of this process, of its ended children and of all living processes below it."""
    times = os.times()
    return sum(times[:4]) + sum(_living(os.getpid())) / _TICKS


def _living(parent: int) -> Iterator[int]:
    """The ticks that each process below has spent, with its ended children."""
    for thread in _entries(Path(f"/proc/{parent}/task")):
        with suppress(OSError):
            for child in (thread / "children").read_text(encoding="ascii").split():
                with suppress(OSError):
                    stat = Path(f"/proc/{child}/stat").read_text(encoding="utf-8", errors="replace")
                    yield sum(map(int, stat.rpartition(")")[2].split()[11:15]))
                    yield from _living(int(child))


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:  # the process has ended
        return []


class _Clock:
    """Measures tests in the process that runs them."""

    def __init__(self) -> None:
        self._before = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self._before = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            now = spent()
            report.user_properties = [*report.user_properties, (_PROPERTY, max(0.0, now - self._before))]
            self._before = max(now, self._before)  # processes whose parents were killed are no longer seen
        return report


class _Table:
    """Sums what is reported, prints the table and checks the budgets."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests = defaultdict[str, float](float)
        self._files = defaultdict[str, float](float)
        self._excess: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, seconds in report.user_properties:
            if name == _PROPERTY and isinstance(seconds, float):
                self._tests[report.nodeid] += seconds
                self._files[report.nodeid.partition("::")[0]] += seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._config.option.budgets:
            usual = float(self._config.getini("processor_budget"))
            budgets = {path: float(number) for path, number in map(str.split, self._config.getini("processor_budgets"))}
            for path, seconds in _largest_first(self._files):
                budget = budgets.get(path, usual)
                if seconds > budget:
                    self._excess.append(f"{path} spent {seconds:.1f} s of processor time; its budget is {budget:g} s")
            if self._excess and exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        tests = sum(self._tests.values())
        if not tests:
            return
        rest = max(0.0, spent() - tests)
        terminalreporter.section("processor time")
        terminalreporter.line(f"{tests:7.1f} s {len(self._tests)} tests in {len(self._files)} files")
        terminalreporter.line(f"{rest:7.1f} s collection, start and end of the test processes")
        counted = self._tests if self._config.option.largest == "tests" else self._files
        for name, seconds in _largest_first(counted)[:SHOWN]:
            terminalreporter.line(f"{seconds:7.1f} s {name}")
        for line in self._excess:
            terminalreporter.line(line, red=True)


def _largest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
