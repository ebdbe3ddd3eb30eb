"""Events are restored without the keys of persons: no text reads as erased, and the keys can be restored afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, cast

import pytest

from eventlog import Context, Position, Unavailable
from eventlog.admin.backup import back_up, restore
from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations, plan_changes
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.privacy import Key, PersonalDataCipher
from eventlog.testing.memory import MemoryKeyring
from httpkit.sse.hub import Hub
from httpkit.sse.stream import Frame, Replay
from pantry.erasures import Erasures
from tests.support.pantry.system import PantrySystem, pantry_system
from tests.support.programs import warm
from tests.support.waiting import wait_until

NAME, NOTES = "Wilma Wolke", "for Sunday"
MISSING = ("[key missing]", "[key missing]")
DECLARED = load_declarations().only("PANTRY", "PANTRY_KEYS")


async def verify(system: PantrySystem) -> CompletedProcess[str]:
    environment = {**system.one.environment, "GCTD_NATS_URL": system.nats.url}
    return await asyncio.to_thread(warm.run, "projections", "verify", "--model", "pantry", environment=environment)


class Tables:
    """The tables of the pantry: ids of erased keys, and of all keys."""

    def __init__(self, erased: list[Key], all_: list[Key]) -> None:
        self._erased, self._all = [key.id for key in erased], [key.id for key in all_]

    async def erased(self) -> list[str]:
        return self._erased

    async def key_ids(self) -> list[str]:
        return self._all


class Side:
    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def catch_up(self) -> None:
        """It is there."""


@asynccontextmanager
async def erasing(
    keyring: MemoryKeyring, tables: Tables, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Hub, PersonalDataCipher]]:
    """Erasures run during the block, and look for missing keys all the time."""
    monkeypatch.setattr("pantry.erasures._LOOKS_AGAIN", 0.005)
    monkeypatch.setattr("eventlog.privacy._LOOKS_AGAIN", 0.0)
    hub = Hub(replay)
    hub.start(0)
    people = PersonalDataCipher(keyring)
    erasures: Any = Erasures(people, cast("Any", tables), cast("Any", Side(hub)))
    running = asyncio.create_task(erasures.run())
    try:
        yield hub, people
    finally:
        running.cancel()
        await hub.close()


async def nothing(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
    yield ()


async def test_keys_of_erased_persons_go_although_another_key_stays_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring, erased, other = MemoryKeyring(), Key.new(1), Key.new(2)
    async with erasing(keyring, Tables([erased], [erased, other]), nothing, monkeypatch) as (_, people):
        await wait_until(lambda: bool(people.missing), timeout=5)
        keyring._keys["anna"] = erased
        await wait_until(lambda: not keyring._keys, timeout=5)


async def test_keys_that_are_lost_while_the_pantry_runs_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stream of keys was replaced: nothing may be written under a key that only this process has."""
    keyring = MemoryKeyring()
    key = await keyring.key_of("anna")
    async with erasing(keyring, Tables([], [key]), nothing, monkeypatch) as (_, people):
        await people.look_for([key.id])
        assert not people.missing
        await wait_until(lambda: people._identity is not None, timeout=5)
        keyring.replace()
        await wait_until(lambda: set(people.missing) == {key.id}, timeout=5)


async def test_an_erasure_is_refused_while_the_key_is_in_this_process_only() -> None:
    """The keyring has no key to destroy, but the process can still read the person's data with its own copy."""
    keyring = MemoryKeyring()
    key = await keyring.key_of("anna")
    people = PersonalDataCipher(keyring)
    erasures = Erasures(people, cast("Any", Tables([], [key])), cast("Any", Side(Hub(nothing))))
    await people.look_for([key.id])
    keyring.replace()
    with pytest.raises(Unavailable, match="keys of persons: 1 are missing"):
        await erasures.erase("Anna", Context())


async def test_a_client_that_comes_back_after_the_keys_is_given_no_event_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def frame(name: str) -> Frame:
        return Frame(Position(2, 0), "stock", name)

    async def replay(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
        yield [frame("Wilma")]

    async def next_event(hub: Hub) -> bytes:
        async with aclosing(hub.follow(str(Position(1, 0)), only=frozenset({"stock"}))) as passages:
            async for passage in passages:
                if passage.frames:
                    return passage.frames[0].data
        raise AssertionError("no event came")

    keyring, key = MemoryKeyring(), Key.new(1)
    async with erasing(keyring, Tables([], [key]), replay, monkeypatch) as (hub, people):
        await wait_until(lambda: bool(people.missing), timeout=5)
        hub.publish([frame("[key missing]")], 2)
        assert await next_event(hub) == b"[key missing]"
        keyring._keys["anna"] = key

        async def is_readable() -> bool:
            return await next_event(hub) == b"Wilma"

        await wait_until(is_readable, timeout=5)


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
        verified = await verify(system)
        assert (verified.returncode, "keys of persons: 1 are missing" in verified.stdout) == (5, True), verified
        (drift,) = await plan_changes(connection, DECLARED)
        assert (drift.name, drift.field, drift.action) == ("PANTRY_KEYS", "", "by hand")
        refused = await server.post("/people:erase", {"name": NAME})
        assert refused.status == 503
        assert "keys of persons: 1 are missing" in str(refused.body)
        assert (await server.move("in", 1, created_by=NAME)).status == 503
        assert await apply_declarations(connection, DECLARED) == [drift]

        await restore(connection, tmp_path / "PANTRY_KEYS.json")

        async def reads_again() -> bool:
            return (NAME, NOTES) in {(row.get("created_by"), row.get("notes")) for row in await server.get("/movements")}

        await wait_until(reads_again, timeout=30)
        await server.ready()
        assert "keys of persons" not in await note()
        assert (await verify(system)).returncode == 0
        await server.moved("in", 1, created_by=NAME, notes=NOTES)
        assert await keyring.find(NAME.casefold()) == key
        assert (await server.post("/people:erase", {"name": NAME})).status == 204
        await call(connection, "STREAM.DELETE.PANTRY_KEYS")
        assert await apply_declarations(connection, DECLARED) == []  # all persons are erased: no key has to be restored
