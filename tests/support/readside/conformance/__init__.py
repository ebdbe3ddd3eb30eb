"""The promises of every store, as tests: a class to inherit in a test module, with a fixture `store` (open, empty).

class TestSQLiteStore(StoreConformance):
    @pytest_asyncio.fixture
    async def store(self, tmp_path): ...
"""

from __future__ import annotations

from tests.support.readside.conformance.checkpoints import CheckpointPromises
from tests.support.readside.conformance.migrations import MigrationPromises
from tests.support.readside.conformance.reading import ReadingPromises
from tests.support.readside.conformance.rows import RowPromises
from tests.support.readside.conformance.tables import (
    BOTH,
    MAP,
    PEOPLE,
    PLACES,
    REGIONS,
    VISITORS,
    VISITS,
    checkpoint,
    parked,
    person,
    step,
    visit,
)


class StoreConformance(RowPromises, CheckpointPromises, ReadingPromises, MigrationPromises):
    """The promises of `projections.store.Store`."""


__all__ = [
    "BOTH",
    "MAP",
    "PEOPLE",
    "PLACES",
    "REGIONS",
    "VISITORS",
    "VISITS",
    "StoreConformance",
    "checkpoint",
    "parked",
    "person",
    "step",
    "visit",
]
