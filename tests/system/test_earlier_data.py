"""Data of an earlier checkout is refused, with the next step for the user."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest

from eventlog import AggregateId, NewCommit, NewEvent, Registry
from eventlog.commit import Proposal
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.serve import SERVICE as TRACKER
from gctd.settings import Settings as TrackerSettings
from pantry.serve import SERVICE as PANTRY
from pantry.settings import Settings as PantrySettings
from projections import MigrationError
from projections.store import SchemaVersion
from projections.stores.databases import store_at
from servicekit import Service
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.real,
    pytest.mark.parametrize(
        ("service", "settings", "category", "event"),
        [
            pytest.param(TRACKER, TrackerSettings(port=0), "gctd.task", "TaskQueued", id="gctd"),
            pytest.param(PANTRY, PantrySettings(host="127.0.0.1", port=0), "pantry.product", "ProductCreated", id="pantry"),
        ],
    ),
]


@attrs.frozen
class Old:
    """An event or a state of an earlier checkout."""

    id: str


@pytest.fixture
def here(settings: Any, nats_url: str, tmp_path: Path) -> Any:
    """The settings, with a database and a log of the test."""
    return attrs.evolve(settings, nats_url=nats_url, database_url=f"sqlite:{tmp_path / 'tables.db'}")


async def test_tables_with_more_migrations_are_refused(service: Service, here: Any, category: str, event: str) -> None:
    del category, event
    async with store_at(here.database_url) as store:
        await store.migrate("", before=SchemaVersion(0), after=SchemaVersion(21), projections=())
    with pytest.raises(
        MigrationError, match=r"version 21, .* run the program that made it, or set the database aside: the tables"
    ):
        async with service.listening(here):
            pass


async def test_events_of_an_unknown_version_park_their_aggregates(service: Service, here: Any, category: str, event: str) -> None:
    async with service.listening(here):
        pass
    await _append_old(here.nats_url, service.model.stream, category, event)

    async def told() -> bool:
        async with http.get("/readyz") as answer:
            text = await answer.text()
        return "up to version 1: run the program that wrote it, or set the data aside and begin with an empty log" in text

    async with service.listening(here) as address, aiohttp.ClientSession(address.url) as http:
        await wait_until(told, timeout=10)


async def _append_old(nats_url: str, stream: str, category: str, event: str) -> None:
    registry = Registry()
    registry.event(event, version=9)(Old)
    registry.state(category, version=9)(State)
    commit = NewCommit(id="old", at=datetime.now(UTC), events=(NewEvent(Old("1")),), state=State("1"))
    async with Connection.open(nats_url, name="earlier checkout") as connection:
        log = JetStreamLog(connection, stream, registry)
        await log.append(Proposal(aggregate=AggregateId(category, "1"), expected=0, commit=commit))


@attrs.frozen
class State(Old):
    """The state."""
