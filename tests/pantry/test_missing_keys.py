"""Events are restored without the keys of persons: no text reads as erased, and the keys can be restored afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.admin.backup import back_up, restore
from eventlog.admin.declarations import load
from eventlog.admin.reconcile import apply, plan
from eventlog.jetstream.api import call
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.jetstream.transport.connection import Connection
from tests.support.pantry.system import pantry_system
from tests.support.waiting import wait_until

NAME, NOTES = "Wilma Wolke", "for Sunday"
MISSING = ("[key missing]", "[key missing]")
DECLARED = load().only("PANTRY", "PANTRY_KEYS")


@pytest.mark.real
async def test_missing_keys_are_named_and_can_be_restored_while_the_pantry_runs(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system, Connection.open(system.nats.url, name="test") as connection:
        server = system.one

        async def shown() -> set[tuple[str, str]]:
            rows = await server.get("/movements")
            return {(row["created_by"], row["notes"]) for row in rows}

        async def note() -> str:
            return str((await server.ask("GET", "/readyz?for=reads")).body)

        await server.create()
        await server.moved("in", 1, created_by=NAME, notes=NOTES)
        await server.kill()
        keyring = JetStreamKeyring(connection, "PANTRY_KEYS", "pantry.key")
        key = await keyring.find(NAME.casefold())
        await back_up(connection, "PANTRY_KEYS", tmp_path)
        await call(connection, "STREAM.DELETE.PANTRY_KEYS")

        await server.begin()

        async def says_so() -> bool:
            return "keys of persons: 1 are missing" in await note()

        await wait_until(says_so, timeout=30)
        assert await shown() == {MISSING}
        (drift,) = await plan(connection, DECLARED)
        assert (drift.name, drift.field, drift.action) == ("PANTRY_KEYS", "", "by hand")
        refused = await server.post("/people:erase", {"name": NAME})
        assert refused.status == 503
        assert "keys of persons: 1 are missing" in str(refused.body)
        assert (await server.move("in", 1, created_by=NAME)).status == 503
        assert await apply(connection, DECLARED) == [drift]

        await restore(connection, tmp_path / "PANTRY_KEYS.json")

        async def reads_again() -> bool:
            return (NAME, NOTES) in {(row.get("created_by"), row.get("notes")) for row in await server.get("/movements")}

        await wait_until(reads_again, timeout=30)
        await server.ready()
        assert "keys of persons" not in await note()
        await server.moved("in", 1, created_by=NAME, notes=NOTES)
        assert await keyring.find(NAME.casefold()) == key
        assert (await server.post("/people:erase", {"name": NAME})).status == 204
        await call(connection, "STREAM.DELETE.PANTRY_KEYS")
        assert await apply(connection, DECLARED) == []  # all persons are erased: no key has to be restored
