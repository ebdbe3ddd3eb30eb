"""A person is erased: no server has data of the person any more, and all other data is unchanged."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from eventlog.commands import Commands
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.privacy import Key
from pantry.domain.person import PERSON, ErasePerson, PersonErased
from projections.stores.postgres.server import PostgresServer
from tests.support.pantry.system import API, FLOUR, MILK, PantrySystem, Server, log_of, pantry_system
from tests.support.programs import warm
from tests.support.readside.tables import execute
from tests.support.waiting import wait_until
from tests.support.web.listener import Listener

pytestmark = pytest.mark.real

NAME, NOTES = "Annegret Zwiebelhuber", "für Tante Quitschfidel"
OTHER = "Balduin Kesselflick"
ERASED = ("[erased]", "[erased]")
TRACES = ("Annegret", "annegret", "Zwiebelhuber", "zwiebelhuber", "Quitschfidel", "quitschfidel")


def traces(*directories: Path) -> list[str]:
    """Return the files whose bytes have any data of the person: log, tables, indexes, output of the programs."""
    files = [file for directory in directories for file in directory.rglob("*") if file.is_file()]
    assert any(file.suffix == ".blk" for file in files)
    tables = [file for file in files if ".db" in file.name or "base" in file.parts]
    assert any(f"product {FLOUR}".encode() in file.read_bytes() for file in tables)
    wanted = [text.encode(coding) for text in TRACES for coding in ("utf-8", "utf-16-le")]
    return [f"{file}: {text!r}" for file in files for text in wanted if text in file.read_bytes()]


@attrs.frozen
class Tables:
    """The place of the tables outside the test's directory; `environment` is for the servers."""

    postgres: PostgresServer | None

    @property
    def environment(self) -> dict[str, str]:
        return {} if self.postgres is None else {"PANTRY_DATABASE_URL": self.postgres.url("pantry")}

    async def directories(self) -> list[Path]:
        """Directories, with everything in their files."""
        if self.postgres is None:
            return []
        await execute(self.postgres.url("pantry"), "CHECKPOINT")
        return [self.postgres.data_dir]


@pytest.fixture(params=["sqlite", "postgres"])
def tables(request: pytest.FixtureRequest) -> Tables:
    return Tables(None if request.param == "sqlite" else request.getfixturevalue("postgres_server"))


def of(movement: Any) -> tuple[str | None, str | None]:
    return movement.get("created_by"), movement.get("notes")


async def erase(server: Server, name: str = NAME) -> None:
    answer = await server.post("/people:erase", {"name": name})
    assert answer.status == 204, answer


async def first_event(server: Server) -> tuple[str | None, str | None]:
    """Of whom the first movement is, to a client that comes back and has seen none."""
    headers = {"Last-Event-ID": "1"}
    async with server.http.get(f"{server.url}{API}/events?events=stock", headers=headers) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                return of(json.loads(line.removeprefix(b"data: "))["movement"])
    raise AssertionError("no event came")


async def made_again(system: PantrySystem) -> None:
    """Rebuild the tables of the first server, while all serve."""
    environment = {**system.one.environment, "GCTD_NATS_URL": system.nats.url}
    rebuilt = await asyncio.to_thread(warm.run, "projections", "rebuild", "pantry", environment=environment)
    assert rebuilt.returncode == 0, rebuilt.stderr
    standing = await system.one.get("/projections")
    assert [copy["part"] for copy in standing["copies"]] == ["old"]
    assert standing["copies"][0]["ready"]


@asynccontextmanager
async def keyring_of(system: PantrySystem) -> AsyncIterator[tuple[JetStreamKeyring, Connection]]:
    async with Connection.open(system.nats.url, name="test") as connection:
        yield JetStreamKeyring(connection, "PANTRY_KEYS", "pantry.key"), connection


async def key_of(system: PantrySystem) -> Key:
    async with keyring_of(system) as (keyring, _):
        key = await keyring.find(NAME.casefold())
    assert key is not None
    return key


async def test_nothing_of_an_erased_person_is_left_and_everything_else_is(tmp_path: Path, tables: Tables) -> None:
    """Neither in a file for each server nor in a Postgres for both, and also not after a rebuild of the tables."""
    if tables.postgres is not None:
        await tables.postgres.create("pantry")
    async with pantry_system(tmp_path, servers=2, **tables.environment) as system:
        one, two = system.servers
        await one.create()
        booking = {"product_ean13": FLOUR, "type": "in", "quantity": 3, "notes": NOTES, "created_by": NAME, "reason": "bought"}
        async with Listener(f"{two.url}{API}/events"):  # while a client follows, the server keeps what it shows
            booked = await one.post("/movements", booking, **{"Idempotency-Key": "k-1"})
            assert (booked.status, of(booked.body)) == (201, (NAME, NOTES))
            undone = await one.post(f"/movements/{booked.body['id']}/undo", {"created_by": NAME.upper(), "notes": NOTES})
            assert undone.status == 201
            await one.post(f"/products/{FLOUR}/count", {"counted": 0, "created_by": NAME, "notes": NOTES})
            await one.moved("in", 2, created_by=OTHER, notes="nothing special")
            last = int((await one.ask("GET", f"{API}/movements")).headers["Event-Sequence"])
            shown = await two.get(f"/movements?min_seq={last}")
            assert [of(row) for row in shown] == [(OTHER, "nothing special"), (NAME.upper(), NOTES), (NAME, NOTES)]

            assert await first_event(two) == (NAME, NOTES)
            await erase(one, f" {NAME.lower()}  ")
            for _ in range(2):
                await erase(two)
            for server in (one, two):

                async def all_erased(server: Server = server) -> bool:
                    rows = await server.get("/movements")
                    return [of(row) for row in rows] == [(OTHER, "nothing special"), *[ERASED] * 2]

                await wait_until(all_erased, timeout=30)
            assert (await one.get(f"/movements/{booked.body['id']}"))["reason"] == "bought"
            assert await one.stock() == 2

            again = await two.post("/movements", booking, **{"Idempotency-Key": "k-1"})
            assert (again.status, again.body["id"], of(again.body)) == (201, booked.body["id"], ERASED)
            assert again.headers["Idempotent-Replayed"] == "true"
            assert await first_event(two) == ERASED
        assert traces(tmp_path, *await tables.directories()) == []
        erased = [event for event in await system.events() if isinstance(event, PersonErased)]
        assert len(erased) == 1
        await made_again(system)
        assert [of(row) for row in await two.get("/movements")] == [(OTHER, "nothing special"), *[ERASED] * 2]
        assert (await one.get(f"/movements/{booked.body['id']}"))["reason"] == "bought"
        for server in (one, two):
            await server.kill()
        assert await one.difference_from_a_fold() is None
    assert traces(tmp_path, *await tables.directories()) == []


async def test_an_erasure_during_bookings_covers_earlier_ones_and_loses_none(tmp_path: Path) -> None:
    async with pantry_system(tmp_path, servers=2) as system:
        one, two = system.servers
        for ean13 in (FLOUR, MILK):
            await one.create(ean13)
        ended = asyncio.Event()

        async def book(server: Server, ean13: str) -> int:
            number = 0
            while not ended.is_set():
                await server.moved("in", 1, ean13, created_by=NAME, notes=NOTES)
                number += 1
            return number

        booking = [asyncio.create_task(book(server, ean13)) for server, ean13 in ((one, FLOUR), (two, MILK)) * 2]
        for _ in range(5):
            await erase(one)
            await erase(two)
            await asyncio.sleep(0.05)
        ended.set()
        booked = sum(await asyncio.gather(*booking))

        async def are_there() -> bool:
            return len(await one.get("/movements")) >= booked  # what was booked through the other server comes as it comes

        await wait_until(are_there)
        rows = await one.get("/movements")
        assert len(rows) == booked
        assert {of(row) for row in rows} <= {(NAME, NOTES), ERASED}
        assert ERASED in {of(row) for row in rows}
        assert await one.stock(FLOUR) + await one.stock(MILK) == booked
        await erase(two)

        async def all_erased() -> bool:
            return {of(row) for server in (one, two) for row in await server.get("/movements")} == {ERASED}

        await wait_until(all_erased, timeout=30)
        assert traces(tmp_path) == []


async def test_a_key_that_is_there_after_its_erasure_is_destroyed_at_the_start(tmp_path: Path) -> None:
    """The server was killed between the event and the key's end; later somebody restores a copy of the keys."""
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create()
        await server.moved("in", 1, created_by=NAME, notes=NOTES)
        key = await key_of(system)
        await server.kill()
        async with log_of(system.nats) as log:
            await Commands(log).execute(PERSON, key.id, ErasePerson(key=key.id, at=datetime.now(UTC)))
        for _ in range(2):
            await server.start()

            async def is_gone() -> bool:
                async with keyring_of(system) as (keyring, _):
                    return await keyring.after(0) == []

            await wait_until(is_gone, timeout=60)
            assert [of(row) for row in await server.get("/movements")] == [ERASED]
            await server.kill()
            async with keyring_of(system) as (keyring, connection):
                entry = b'{"id":"%b","secret":"%b"}' % (key.id.encode(), base64.b64encode(key.secret))
                await connection.request("pantry.key.restored", entry)
                assert [found.id for found in await keyring.after(0)] == [key.id]
