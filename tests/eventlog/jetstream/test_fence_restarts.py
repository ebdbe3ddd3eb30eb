"""No commit is stored in a stream that was recreated or cut since the last write."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from eventlog import IncarnationChanged, LogDamaged, LogDiverged, LogTruncated, Unavailable
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.commands import Commands
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.fence import Fence
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.counter import COUNTER, REGISTRY, Add
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

STREAM = "COUNTERS"
FIELDS = {"subjects": ["test.counter.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "1MiB", "incarnation": True}
DECLARED = parse({"streams": {STREAM: FIELDS}})


@pytest_asyncio.fixture
async def connection(nats_server: EmbeddedServer) -> AsyncIterator[Connection]:
    async with Connection.open(nats_server.url, name="fence", check_every=0.5, check_timeout=0.5) as connection:
        await apply_declarations(connection, DECLARED)
        yield connection


async def add(log: JetStreamLog, id_: str) -> None:
    await Commands(log).execute(COUNTER, id_, Add(amount=1), deadline=10)


async def test_a_stream_that_was_made_again_under_a_running_writer_takes_nothing(connection: Connection) -> None:
    """Neither a new aggregate nor a known one: without a look at the stream in between."""
    log = JetStreamLog(connection, STREAM, REGISTRY)
    commands = Commands(log)
    for id_ in ("a", "b"):
        await commands.execute(COUNTER, id_, Add(amount=1))
    await call(connection, f"STREAM.DELETE.{STREAM}")
    await apply_declarations(connection, DECLARED)
    for id_ in ("new", "a", "b", "newer"):
        with pytest.raises(IncarnationChanged) as raised:
            await commands.execute(COUNTER, id_, Add(amount=1))
        assert raised.value.status == 503
    assert (await JetStreamLog(connection, STREAM, REGISTRY).head()).last == 0


async def backed_up(server: EmbeddedServer, copy: Path) -> None:
    """Copy the store of a server, which is stopped for that time."""
    await server.stop()
    await asyncio.to_thread(shutil.copytree, server.data_dir / "jetstream", copy)
    await server.start()


async def restored(server: EmbeddedServer, copy: Path) -> None:
    """Put a copy in the place of the store of a server."""
    data = server.data_dir / "jetstream"
    await server.stop()
    await asyncio.to_thread(shutil.rmtree, data)
    await asyncio.to_thread(shutil.copytree, copy, data)
    await server.start()


async def test_a_log_that_lost_its_end_while_the_server_was_away_takes_nothing(
    nats_server: EmbeddedServer, connection: Connection, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    log = JetStreamLog(connection, STREAM, REGISTRY)
    await add(log, "a")
    await backed_up(nats_server, copy)
    await connection.up(10)
    for id_ in ("a", "b", "c"):
        await add(log, id_)
    await restored(nats_server, copy)
    await connection.up(10)
    await wait_until(lambda: connection.connected, timeout=10)
    with pytest.raises(Unavailable, match="ends at sequence 1, and 4 was acknowledged; this is looked at again"):
        await add(log, "new")
    await asyncio.sleep(1.0)  # a final verdict needs a log that has not moved for a second
    for _ in range(2):
        with pytest.raises(LogTruncated, match="ends at sequence 1, and 4 was acknowledged"):
            await add(log, "new")
    async with Connection.open(nats_server.url, name="other") as other:
        assert (await JetStreamLog(other, STREAM, REGISTRY).head()).last == 1


@pytest.mark.parametrize("known", ["written", "read"])
async def test_a_log_that_was_cut_and_has_grown_to_the_same_sequence_takes_nothing(
    nats_server: EmbeddedServer, connection: Connection, tmp_path: Path, known: str
) -> None:
    """The guard fits again by chance: the aggregate has another commit at the sequence that this process knows."""
    copy = tmp_path / "copy"
    log = JetStreamLog(connection, STREAM, REGISTRY)
    commands = Commands(log)
    async with Connection.open(nats_server.url, name="other", check_every=0.5, check_timeout=0.5) as other:
        another = JetStreamLog(other, STREAM, REGISTRY)
        await add(another, "a")
        await backed_up(nats_server, copy)
        await connection.up(10)
        if known == "written":
            await commands.execute(COUNTER, "a", Add(amount=1))
        else:
            await other.up(10)
            await add(another, "a")
            assert (await log.last(COUNTER.aggregate("a"))) is not None
        await restored(nats_server, copy)
        async with Connection.open(nats_server.url, name="third") as third:
            await add(JetStreamLog(third, STREAM, REGISTRY), "a")
        await connection.up(10)
        for _ in range(2):
            with pytest.raises(LogDiverged, match="sequence 2 is another commit now"):
                await commands.execute(COUNTER, "a", Add(amount=1))
        assert (await log.head()).last == 2


async def test_a_reconnect_to_the_same_log_goes_on(nats_server: EmbeddedServer, connection: Connection) -> None:
    log = JetStreamLog(connection, STREAM, REGISTRY)
    await add(log, "a")
    await nats_server.restart()
    await connection.up(10)
    await add(log, "b")
    assert (await log.head()).last == 2


async def test_an_acknowledgement_that_goes_back_closes_the_log(connection: Connection) -> None:
    """As the last resort: of a log that was cut and has grown again in between, unseen."""
    log = JetStreamLog(connection, STREAM, REGISTRY)
    await add(log, "a")
    fence: Fence = log._fence
    fence.acknowledged = 10
    with pytest.raises(LogDiverged):
        await add(log, "b")
    with pytest.raises(LogDamaged):
        await add(log, "c")
    assert (await log.head()).last == 2
