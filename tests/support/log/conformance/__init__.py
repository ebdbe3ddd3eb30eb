"""The promises of every implementation of `eventlog.port.EventLog`, as tests: each method is one promise.

A test module derives from the suite and gives it an empty log whose registry is `REGISTRY`:

    class TestMemoryLog(EventLogConformance):
        @pytest.fixture
        def log(self) -> EventLog:
            return MemoryLog(REGISTRY)
"""

from __future__ import annotations

from tests.support.log.conformance.accounts import (
    CATEGORY,
    REGISTRY,
    SUBJECTS,
    Account,
    Deposited,
    account,
    deposit,
    first_of,
    in_row,
    stored,
)
from tests.support.log.conformance.appending import AppendPromises
from tests.support.log.conformance.batches import BatchPromises
from tests.support.log.conformance.reading import ReadingPromises
from tests.support.log.conformance.rows import RowPromises


class EventLogConformance(AppendPromises, BatchPromises, RowPromises, ReadingPromises):
    """Derive from it and define the fixture `log`: an empty log whose registry is `REGISTRY`."""


__all__ = [
    "CATEGORY",
    "REGISTRY",
    "SUBJECTS",
    "Account",
    "Deposited",
    "EventLogConformance",
    "account",
    "deposit",
    "first_of",
    "in_row",
    "stored",
]
