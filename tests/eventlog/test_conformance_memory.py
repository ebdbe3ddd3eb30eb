"""The log in memory keeps the promises of the port."""

from __future__ import annotations

import pytest

from eventlog.conformance import REGISTRY, EventLogConformance
from eventlog.memory import MemoryLog
from eventlog.port import EventLog


class TestMemoryLog(EventLogConformance):
    @pytest.fixture
    def log(self) -> EventLog:
        return MemoryLog(REGISTRY)
