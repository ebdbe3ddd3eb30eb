"""Presence: a member that reports is present, and a silent one is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import Unavailable
from eventlog.jetstream.connection import Connection
from gctd.broker.presence import Presence
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

BUCKET = "gctd-workers"


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="presence") as connection:
        yield connection


async def presence_on(connection: Connection, ttl: str = "15s") -> Presence:
    await apply_declarations(connection, load_declarations(overrides={BUCKET: {"ttl": ttl}}).only(BUCKET))
    return Presence(connection, BUCKET)


async def test_a_present_worker_is_seen_with_its_last_heartbeat(connection: Connection) -> None:
    presence = await presence_on(connection)
    assert await presence.present() == {}
    await presence.announce("worker-1", b"idle")
    await presence.announce("host.example_2", b"")
    await presence.announce("worker-1", b"busy")
    assert await presence.present() == {"worker-1": b"busy", "host.example_2": b""}


async def test_when_somebody_was_heard_of_is_the_time_of_the_broker(connection: Connection) -> None:
    presence = await presence_on(connection)
    before = datetime.now(UTC)
    await presence.announce("worker-1", b"idle")
    await presence.announce("worker-1", b"busy")
    heard = await presence.heard()
    assert heard["worker-1"].payload == b"busy"
    assert before <= heard["worker-1"].at <= datetime.now(UTC)


async def test_a_worker_that_leaves_is_gone_at_once(connection: Connection) -> None:
    presence = await presence_on(connection)
    await presence.announce("stays", b"")
    await presence.announce("leaves", b"")
    await presence.leave("leaves")
    assert set(await presence.present()) == {"stays"}


async def test_a_silent_worker_lapses(connection: Connection) -> None:
    """The server may take a little longer than the TTL, never less."""
    presence = await presence_on(connection, "3s")
    await presence.announce("silent", b"")
    start = time.monotonic()

    async def only_the_other() -> bool:
        await presence.announce("goes-on", b"")
        here = set(await presence.present())
        assert "goes-on" in here
        return here == {"goes-on"}

    await wait_until(only_the_other, 30, every=0.1)
    assert time.monotonic() - start > 2.9


async def test_a_hundred_are_seen_with_one_request(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    presence = await presence_on(connection)
    for number in range(100):
        await presence.announce(f"worker-{number}", b"x" * 300)
    sent, write = [], connection.client.write

    async def count(frames: list[bytes]) -> None:
        sent.extend(frames)
        await write(frames)

    monkeypatch.setattr(connection.client, "write", count)
    assert len(await presence.present()) == 100
    assert len(sent) == 1


async def test_other_clients_see_it_as_a_bucket_and_may_delete_in_it(connection: Connection) -> None:
    """ADR-8, as nats-py reads it."""
    presence = await presence_on(connection)
    await presence.announce("worker-1", b"idle")
    bucket = await connection.client.jetstream().key_value(BUCKET)
    assert (await bucket.get("worker-1")).value == b"idle"
    await bucket.delete("worker-1")
    assert await presence.present() == {}


@pytest.mark.parametrize("id_", ["*", ">", "a b", "", "a..b", ".a", "a.>"])
async def test_names_that_would_mean_others_are_refused(connection: Connection, id_: str) -> None:
    presence = await presence_on(connection)
    for call in (presence.announce(id_, b""), presence.leave(id_)):
        with pytest.raises(ValueError, match="cannot name"):
            await call


async def test_a_heartbeat_that_cannot_be_stored_is_reported(connection: Connection) -> None:
    await presence_on(connection)
    await apply_declarations(connection, load_declarations(overrides={BUCKET: {"max_bytes": 300}}).only(BUCKET))
    with pytest.raises(Unavailable, match="maximum bytes exceeded"):
        await Presence(connection, BUCKET).announce("worker-1", b"x" * 1000)


async def test_a_bucket_that_is_missing_is_unavailable(connection: Connection) -> None:
    presence = Presence(connection, "no-such-bucket")
    for asking in (presence.announce("worker-1", b""), presence.present()):
        with pytest.raises(Unavailable):
            await asking


async def test_presence_outlives_the_broker(nats_server: EmbeddedServer) -> None:
    """Or a restart would send the work of all workers to others."""
    async with Connection.open(nats_server.url, name="presence") as connection:
        presence = await presence_on(connection)
        await presence.announce("worker-1", b"busy")
        await nats_server.kill()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(presence.present(), 10)
        await nats_server.restart()
        await connection.up(30)
        assert await presence.present() == {"worker-1": b"busy"}
