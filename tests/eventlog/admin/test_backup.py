"""Streams are copied while they are written to, and restored on a clean server: the same events, the same tables."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from eventlog import AggregateId, Unavailable
from eventlog.admin import reconcile as streams
from eventlog.admin.backup import back_up, restore
from eventlog.admin.declarations import load_declarations
from eventlog.commands import Commands
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.jetstream.log import JetStreamLog
from eventlog.privacy import PersonalDataCipher
from gctd.broker.blobs import BlobStore
from pantry.domain.ledger import PRODUCT, CreateProduct, RecordMovement
from pantry.domain.product import Details, MovementType
from pantry.domain.registry import REGISTRY
from pantry.readmodel import MODEL
from projections.rebuild.verify import Dump, dump, replayed_copy
from tests.support.log.damage import flip
from tests.support.programs import warm

pytestmark = pytest.mark.real

EAN = "4006381333931"
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


@attrs.frozen
class Ended:
    code: int
    out: str
    err: str

    @property
    def last(self) -> dict[str, int]:
        return {copied["stream"]: copied["last"] for copied in json.loads(self.out)}


async def run(server: EmbeddedServer, *arguments: object) -> Ended:
    words = ("streams", *map(str, arguments), "--nats-url", server.url, "--json")
    done = await asyncio.to_thread(warm.run, "projections", *words, environment=os.environ)
    return Ended(done.returncode, done.stdout, done.stderr)


def log_on(connection: Connection) -> JetStreamLog:
    return JetStreamLog(
        connection, MODEL.stream, REGISTRY, people=PersonalDataCipher(JetStreamKeyring(connection, "PANTRY_KEYS", "pantry.key"))
    )


async def book(log: JetStreamLog, number: int) -> None:
    movement: Any = RecordMovement(
        id=f"m-{number}", ean13=EAN, type=MovementType.IN, quantity=1000, at=AT, notes="for Sunday", created_by="Wilma Wolke"
    )
    await Commands(log).execute(PRODUCT, EAN, movement)


async def tables_of(log: JetStreamLog, until: int, directory: Path) -> Dump:
    async with replayed_copy(log, MODEL, until=until, directory=directory) as fresh:
        return await dump(fresh, MODEL)


async def of_whom(log: JetStreamLog) -> set[str]:
    found = [
        event.data
        for commit in [c async for c in log.history(AggregateId("pantry.product", EAN))]
        for event in await log.decrypt(commit)
    ]
    return {event.created_by for event in found if hasattr(event, "created_by")}


async def test_a_copy_of_a_running_server_makes_the_same_tables_on_a_clean_one(tmp_path: Path) -> None:
    copies, keys = tmp_path / "copies", tmp_path / "keys"
    async with EmbeddedServer(tmp_path / "one") as one, Connection.open(one.url, name="test") as connection:
        assert await streams.apply_declarations(connection, load_declarations()) == []
        log = log_on(connection)
        details = Details(name="Flour", description="", unit="kg", min_stock=0, category_id=None)
        await Commands(log).execute(PRODUCT, EAN, CreateProduct(ean13=EAN, details=details, at=AT))
        for number in range(300):
            await book(log, number)
        blob = await BlobStore(connection, "gctd-blobs").put(b"a profile" * 100_000)
        ended = asyncio.Event()

        async def go_on() -> None:
            number = 300
            while not ended.is_set():
                await book(log, number)
                number += 1
                await asyncio.sleep(0.005)

        booking = asyncio.create_task(go_on())
        made = await run(one, "backup", copies)
        ended.set()
        await booking
        assert made.code == 0, made.err
        assert set(made.last) == {"GCTD", "PANTRY", "OBJ_gctd-blobs"}
        assert made.last["PANTRY"] >= 301
        head = await log.head()
        before = await tables_of(log, made.last["PANTRY"], tmp_path)
        with pytest.raises(FileExistsError):
            await back_up(connection, "PANTRY", copies)
        keys.mkdir()
        assert (await back_up(connection, "PANTRY_KEYS", keys, verify=True)).messages == 1
        assert (await run(one, "restore", copies)).code == 5

    async with EmbeddedServer(tmp_path / "two") as two, Connection.open(two.url, name="test") as connection:
        restored = await run(two, "restore", copies)
        assert (restored.code, restored.last) == (0, made.last), restored.err
        log = log_on(connection)
        again = await log.head()
        assert (again.incarnation, again.first, again.last) == (head.incarnation, 1, made.last["PANTRY"])
        assert await tables_of(log, again.last, tmp_path) == before
        assert await BlobStore(connection, "gctd-blobs").get(blob.digest) == b"a profile" * 100_000
        assert await streams.apply_declarations(connection, load_declarations().only("GCTD", "PANTRY", "gctd-blobs")) == []
        assert await of_whom(log) == {"[key missing]"}  # no keys are not erased keys
        await restore(connection, keys / "PANTRY_KEYS.json")
        log = log_on(connection)
        assert await of_whom(log) == {"Wilma Wolke"}
        assert await streams.apply_declarations(connection, load_declarations()) == []
        await book(log, 9999)
        assert (await log.head()).last == again.last + 1


@pytest.mark.parametrize("there", [[], ["PANTRY_KEYS", "gctd-blobs"]], ids=["no stream", "no event stream"])
async def test_a_backup_without_an_event_stream_fails(tmp_path: Path, there: list[str]) -> None:
    """As of a wrong server: an empty directory would be taken for a copy of the events."""
    async with EmbeddedServer(tmp_path / "one") as one, Connection.open(one.url, name="test") as connection:
        assert await streams.apply_declarations(connection, load_declarations().only(*there)) == []
        made = await run(one, "backup", tmp_path / "copies")
    assert made.code == 3, made.err
    assert "the server has no stream GCTD or PANTRY" in made.err
    assert not made.out
    assert not list((tmp_path / "copies").iterdir())


async def test_a_restore_begins_when_a_server_listens_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a cluster this took a moment in 4 of 180 restores: the server of the client learns late who listens."""
    async with EmbeddedServer(tmp_path / "one") as one, Connection.open(one.url, name="test") as connection:
        await streams.apply_declarations(connection, load_declarations().only("PANTRY"))
        made = await back_up(connection, "PANTRY", tmp_path)
        await call(connection, "STREAM.DELETE.PANTRY")
        send = Connection.request
        refusals: list[str] = []

        async def request(self: Connection, subject: str, *arguments: Any, **options: Any) -> Any:
            if subject.startswith("$JS.SNAPSHOT.RESTORE.") and len(refusals) < 2:
                refusals.append(subject)
                raise Unavailable(f"nothing on NATS takes {subject}")
            return await send(self, subject, *arguments, **options)

        monkeypatch.setattr(Connection, "request", request)
        assert await restore(connection, tmp_path / "PANTRY.json") == made
        assert len(refusals) == 2


async def test_a_damaged_copy_is_refused_before_anything_is_restored(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / "one") as one, Connection.open(one.url, name="test") as connection:
        await streams.apply_declarations(connection, load_declarations().only("PANTRY", "GCTD"))
        copies = tmp_path / "copies"
        copies.mkdir()
        for stream in ("GCTD", "PANTRY"):
            await back_up(connection, stream, copies)
        file = copies / "PANTRY.snapshot"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        refused = await run(one, "restore", copies)
        assert refused.code == 1
        assert "PANTRY.snapshot" in refused.err


async def stocked(directory: Path) -> None:
    """A stopped server with 30 movements of a product."""
    async with EmbeddedServer(directory) as one, Connection.open(one.url, name="test") as connection:
        await streams.apply_declarations(connection, load_declarations().only("PANTRY", "PANTRY_KEYS"))
        log = log_on(connection)
        details = Details(name="Flour", description="", unit="kg", min_stock=0, category_id=None)
        await Commands(log).execute(PRODUCT, EAN, CreateProduct(ean13=EAN, details=details, at=AT))
        for number in range(30):
            await book(log, number)


async def test_a_stream_with_a_damaged_record_gives_no_copy_and_an_older_one_stays(tmp_path: Path) -> None:
    await stocked(tmp_path / "one")
    async with EmbeddedServer(tmp_path / "one") as one:
        assert (await run(one, "backup", tmp_path / "older", "--stream", "PANTRY")).code == 0
    before = {file.name: file.read_bytes() for file in (tmp_path / "older").iterdir()}
    flip(tmp_path / "one", "PANTRY", b'"m-7"')
    async with EmbeddedServer(tmp_path / "one") as one:
        refused = await run(one, "backup", tmp_path / "new", "--stream", "PANTRY")
        assert refused.code == 5, refused
        assert "the copy of PANTRY" in refused.err
        assert list((tmp_path / "new").iterdir()) == []
        kept = await run(one, "backup", tmp_path / "new", "--stream", "PANTRY", "--unverified")
        assert kept.code == 0
        assert json.loads(kept.out)[0]["verified"] is False
        assert {file.name: file.read_bytes() for file in (tmp_path / "older").iterdir()} == before


async def test_copies_are_verified_without_a_server(tmp_path: Path) -> None:
    await stocked(tmp_path / "one")
    copies = tmp_path / "copies"
    async with EmbeddedServer(tmp_path / "one") as one:
        made = await run(one, "backup", copies, "--stream", "PANTRY")
        assert json.loads(made.out)[0]["verified"] is True
    sound = await run(one, "backup", "--verify", copies)
    assert (sound.code, sound.last) == (0, {"PANTRY": 31}), sound.err
    description = copies / "PANTRY.json"
    described = json.loads(description.read_text())
    description.write_text(json.dumps({**described, "digest": "A" * 256}))
    assert (await run(one, "backup", "--verify", copies)).code == 5
    description.write_text(json.dumps(described))
    file = copies / "PANTRY.snapshot"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    damaged = await run(one, "backup", "--verify", copies)
    assert damaged.code == 5
    assert "PANTRY.snapshot is not what was written" in damaged.err


async def test_the_files_of_a_copy_and_their_names_are_on_the_disk_when_it_is_made(
    tmp_path: Path, nats_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair removes the stream after it has made its copies. Only their owner can read them, with any umask."""
    synced: dict[str, list[str]] = {}

    def noted(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced[place.name] = sorted(file.name for file in place.iterdir()) if place.is_dir() else []

    monkeypatch.setattr(os, "fsync", noted)
    copies = tmp_path / "copies"
    copies.mkdir()
    async with Connection.open(nats_server.url, name="test") as connection:
        await call(connection, "STREAM.CREATE.SOME", {"name": "SOME", "subjects": ["some.>"], "storage": "file"})
        await connection.request("some.thing", b"1", timeout=5)
        before = os.umask(0o022)
        try:
            await back_up(connection, "SOME", copies, verify=True)
        finally:
            os.umask(before)
    names = ["SOME.json", "SOME.snapshot"]
    assert [name for name in names if (copies / name).stat().st_mode & 0o077] == []
    assert set(synced) >= {*names, "copies"}
    assert set(synced["copies"]) >= set(names)
