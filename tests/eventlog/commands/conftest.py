"""A log in memory, and commands on it."""

from __future__ import annotations

import pytest

from eventlog.commands import Commands
from tests.eventlog.commands.counters import KeysInTheLog, Slow


@pytest.fixture
def log() -> Slow:
    return Slow()


@pytest.fixture
def commands(log: Slow) -> Commands:
    return Commands(log, keys=KeysInTheLog(log))
