"""A pytest plugin with one seed for all tests that make random data: a fresh one for each run, which is printed.

Hypothesis has the same seed. `--seed` repeats a run.
"""

from __future__ import annotations

import secrets

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("seed")
    group.addoption("--seed", type=int, help="repeat the random data of a run that printed this number")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.seed is None:
        config.option.seed = secrets.randbits(31)  # processes of pytest-xdist get it with the other options
    if config.pluginmanager.has_plugin("hypothesispytest"):
        config.option.hypothesis_seed = str(config.option.seed)


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.option.seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Name the seed of a failed run also at the end, because `-q` leaves out the header."""
    if exitstatus:
        terminalreporter.write_line(f"the seed of this run: --seed {config.option.seed}")


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of this run."""
    number: int = pytestconfig.option.seed
    return number
