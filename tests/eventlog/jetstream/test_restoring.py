"""A stream that is being restored takes no writes, readers wait for it, and a restore that was killed is completed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from eventlog import Registry, Unavailable
from eventlog.admin import backup
from eventlog.admin.backup import StreamThere, back_up, described, restore
from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.admin.scrub import LogScrubber
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import MessageReader, StreamClosed, call, closed
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.keyring import JetStreamKeyring
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.bulk import STREAM, SUBJECT, bulk_stream, fill
from tests.support.log.reading import Reading
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

COUNT = 1500
"""Records of the stream: nats-server writes about a thousand a second when it restores a stream."""


async def copied(connection: Connection, directory: Path) -> Path:
    """Fill a stream, and copy it."""
    await bulk_stream(connection)
    await fill(connection, COUNT)
    await back_up(connection, STREAM, directory)
    return directory / f"{STREAM}.json"


async def info(connection: Connection) -> Any:
    """The server's information on the stream, None if it is not there."""
    try:
        return await call(connection, f"STREAM.INFO.{STREAM}")
    except Exception:  # noqa: BLE001 - it is not there
        return None


async def restoring(connection: Connection, file: Path) -> asyncio.Task[Any]:
    """Begin a restore, and return it when some of its records are there."""
    task = asyncio.create_task(restore(connection, file))
    await wait_until(lambda: begun(connection), every=0.001)
    return task


async def begun(connection: Connection) -> bool:
    found = await info(connection)
    return found is not None and found["state"]["messages"] > 5


async def test_readers_wait_while_records_are_missing(own: Connection, tmp_path: Path) -> None:
    """nats-server shows the stream with some of its records. They are no end, no hole and no damage."""
    file = await copied(own, tmp_path)
    reading = Reading(own)
    await reading.reaches(COUNT)
    log = JetStreamLog(own, STREAM, Registry())
    before = await log.head()
    config = (await info(own))["config"]
    await call(own, f"STREAM.DELETE.{STREAM}")
    await call(own, f"STREAM.CREATE.{STREAM}", closed(config, copy=described(file).sha256))
    for _ in range(5):
        await own.request(f"closed.{STREAM}.record", b"x")
    await asyncio.wait({reading.task}, timeout=1.5)  # a log that has not moved for a second is truncated
    assert not reading.task.done()
    for wrong in (log.head(), LogScrubber(MessageReader(own, STREAM), Registry(), log.head).scrub(), back_up_of(own, tmp_path)):
        with pytest.raises(StreamClosed, match="being restored from a copy, and has 5 records so far"):
            await wrong
    await call(own, f"STREAM.DELETE.{STREAM}")
    await restore(own, file)
    assert await log.head() == before
    await own.request(f"{SUBJECT}.new", b"x")
    await reading.reaches(COUNT + 1)
    assert reading.sequences == list(range(1, COUNT + 2))
    await reading.close()


async def back_up_of(connection: Connection, directory: Path) -> None:
    (directory / "partial").mkdir()
    await back_up(connection, STREAM, directory / "partial")


async def test_no_message_gets_the_sequence_of_a_record(own: Connection, tmp_path: Path) -> None:
    """The subjects of the stream are back with its last record."""
    file = await copied(own, tmp_path)
    config = (await info(own))["config"]
    await call(own, f"STREAM.DELETE.{STREAM}")
    restored = asyncio.create_task(restore(own, file))
    looks, stored = [], 0
    while not restored.done():
        with contextlib.suppress(Unavailable):
            stored += "error" not in json.loads((await own.request(f"{SUBJECT}.new", b"x")).data)
        looks.append(await info(own))
    await restored
    partial = [look for look in looks if look is not None and look["state"]["messages"] < COUNT]
    assert partial
    assert {tuple(look["config"]["subjects"]) for look in partial} == {(f"closed.{STREAM}.>",)}
    found = await info(own)
    assert found["config"] == config
    assert found["state"]["messages"] == COUNT + stored


async def test_a_key_that_is_not_restored_yet_is_neither_gone_nor_destroyed(own: Connection, tmp_path: Path) -> None:
    """Without this its person reads as erased, and an erasure is confirmed that the restore undoes."""
    declared = load_declarations().only("PANTRY_KEYS")
    await apply_declarations(own, declared)
    keyring = JetStreamKeyring(own, "PANTRY_KEYS", "pantry.key")
    key = await keyring.key_of("Wilma")
    await back_up(own, "PANTRY_KEYS", tmp_path)
    config = (await call(own, "STREAM.INFO.PANTRY_KEYS"))["config"]
    await call(own, "STREAM.DELETE.PANTRY_KEYS")
    await call(own, "STREAM.CREATE.PANTRY_KEYS", closed(config, copy=described(tmp_path / "PANTRY_KEYS.json").sha256))
    for wrong in (keyring.find("Wilma"), keyring.after(0), keyring.destroy(key)):
        with pytest.raises(StreamClosed, match="being restored from a copy, and has 0 records so far"):
            await wrong
    with pytest.raises(Unavailable):
        await keyring.key_of("Wilma")
    await call(own, "STREAM.DELETE.PANTRY_KEYS")
    await restore(own, tmp_path / "PANTRY_KEYS.json")
    assert await keyring.find("Wilma") == key
    await keyring.destroy(key)
    assert await keyring.find("Wilma") is None


async def test_a_stream_without_a_record_is_replaced_and_one_with_a_record_is_not(own: Connection, tmp_path: Path) -> None:
    """A service that starts during a repair creates the missing stream."""
    file = await copied(own, tmp_path)
    await call(own, f"STREAM.DELETE.{STREAM}")
    await bulk_stream(own)
    await restore(own, file)
    assert (await info(own))["state"]["messages"] == COUNT
    await call(own, f"STREAM.DELETE.{STREAM}")
    await bulk_stream(own)
    await fill(own, 1)
    with pytest.raises(StreamThere):
        await restore(own, file)
    found = await info(own)
    assert (found["state"]["messages"], found["config"]["subjects"]) == (1, [f"{SUBJECT}.*"])


async def test_a_restore_that_was_killed_is_completed_by_the_same_command(
    nats_server: EmbeddedServer, own: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the command was killed or the server. Another copy does not complete it."""
    monkeypatch.setattr(backup, "_STANDS_STILL", 0.5)
    file = await copied(own, tmp_path)
    await fill(own, 1)
    (tmp_path / "later").mkdir()
    await back_up(own, STREAM, tmp_path / "later")
    await call(own, f"STREAM.DELETE.{STREAM}")
    task = await restoring(own, file)
    task.cancel()
    await asyncio.wait({task})
    with pytest.raises(StreamThere):
        await restore(own, tmp_path / "later" / file.name)
    assert (await restore(own, file)).messages == COUNT
    assert (await info(own))["state"]["messages"] == COUNT

    await call(own, f"STREAM.DELETE.{STREAM}")
    task = await restoring(own, file)
    await nats_server.kill()
    task.cancel()
    await asyncio.wait({task})
    await nats_server.restart()
    await own.up(10)
    await restore(own, file)
    found = await info(own)
    assert (found["state"]["messages"], found["config"]["subjects"]) == (COUNT, [f"{SUBJECT}.*"])
