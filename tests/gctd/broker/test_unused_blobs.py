"""Bodies without a reference are removed, also over kills, and never a body that is stored again at the same moment."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import BlobMissing, Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.blobs import BlobStore, Removed
from gctd.broker.objects import ObjectBucket
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

BUCKET = "gctd-blobs"
STREAM = f"OBJ_{BUCKET}"


class Death(BaseException):
    """The process ends: no handler of errors runs."""


def body(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def later() -> datetime:
    """A time before which everything is stored that a test has stored so far."""
    return datetime.now(UTC) + timedelta(seconds=1)


def never(_: str, __: datetime) -> bool:
    return False


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="blobs") as connection:
        await apply_declarations(connection, load_declarations().only(BUCKET))
        yield connection


async def messages(connection: Connection) -> int:
    count: int = (await call(connection, f"STREAM.INFO.{STREAM}"))["state"]["messages"]
    return count


async def is_there(connection: Connection, digest: str) -> bool:
    try:
        await BlobStore(connection, BUCKET).get(digest)
    except BlobMissing:
        return False
    return True


async def test_old_unused_blobs_go_and_all_others_stay(connection: Connection) -> None:
    store = BlobStore(connection, BUCKET)
    used, unused, named, left = [await store.put(body(size)) for size in (700_000, 700_001, 20, 30)]
    await store.link("analyses/alive/1", named)
    await store.link("analyses/gone/1", left)
    await store.link("coverage/gone/1.out", unused)
    other = await connection.client.jetstream().object_store(BUCKET)
    await other.put("a file of the operator", body(40))
    before = later()
    assert await store.remove_unused({used.digest}, keeps=never, before=datetime.now(UTC) - timedelta(hours=1)) == Removed()
    found = await store.remove_unused({used.digest}, keeps=lambda name, _: "alive" in name, before=before)
    assert found == Removed(bodies=2, size=700_031, names=2)
    there = [await is_there(connection, one.digest) for one in (used, named, unused, left)]
    assert there == [True, True, False, False]
    assert await store.resolve("analyses/alive/1") == named
    assert await store.resolve("analyses/gone/1") is await store.resolve("coverage/gone/1.out") is None
    assert (await other.get("a file of the operator")).data == body(40)
    assert await messages(connection) == 3 + 2 + 1 + 2, "nothing of the removed ones is left"


async def test_a_name_without_its_body_goes(connection: Connection) -> None:
    store = BlobStore(connection, BUCKET)
    ref = await store.put(body(10))
    await store.link("coverage/alive/1.out", ref)
    found = await store.remove_unused((), keeps=lambda _, __: True, before=later())
    assert found == Removed(), "the name that is kept needs its body"
    await (await connection.client.jetstream().object_store(BUCKET)).delete(f"sha256-{ref.digest}")
    assert await store.remove_unused((), keeps=lambda _, __: True, before=later()) == Removed(names=1)
    assert await messages(connection) == 0


async def test_a_body_that_is_stored_again_is_young_again(connection: Connection) -> None:
    store, bucket = BlobStore(connection, BUCKET), ObjectBucket(connection, BUCKET)
    ref = await store.put(body(700_000))
    (seen,) = [one async for found in bucket.all() for one in found]
    await BlobStore(connection, BUCKET).put(body(700_000))
    assert await bucket.remove(seen) is False, "it was stored again after it was looked at"
    assert await is_there(connection, ref.digest)
    assert await store.remove_unused((), keeps=never, before=seen.at + timedelta(microseconds=1)) == Removed()
    assert await is_there(connection, ref.digest)


async def test_a_body_that_is_stored_while_it_is_removed_is_there_afterwards(connection: Connection) -> None:
    """In either order, the body can be read after both. Broker and test have the same clock."""
    chance, data = random.Random(1), body(600_000)
    for _ in range(30):
        digest = (await BlobStore(connection, BUCKET).put(data)).digest
        before = datetime.now(UTC)

        async def put() -> None:
            await asyncio.sleep(chance.uniform(0, 0.012))
            await BlobStore(connection, BUCKET).put(data)

        await asyncio.gather(put(), BlobStore(connection, BUCKET).remove_unused((), keeps=never, before=before))
        assert await is_there(connection, digest)
    assert await messages(connection) == 3


@pytest.mark.parametrize("step", range(4))
async def test_a_removal_that_ends_between_two_steps_is_completed_by_the_next(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """A process that dies sends no further request. No part of the body comes back, and it can be stored again."""
    store = BlobStore(connection, BUCKET)
    ref = await store.put(body(700_000))
    before, left, request = later(), step, connection.request

    async def until_death(*given: Any, **named: Any) -> Any:
        nonlocal left
        if left == 0:
            raise Death
        left -= 1
        return await request(*given, **named)

    with monkeypatch.context() as dying:
        dying.setattr(connection, "request", until_death)
        if step < 3:  # the mark, the chunks, the mark's end
            with pytest.raises(Death):
                await store.remove_unused((), keeps=never, before=before)
        else:
            await store.remove_unused((), keeps=never, before=before)
    assert await is_there(connection, ref.digest) is (step == 0)
    await store.remove_unused((), keeps=never, before=before)
    assert await messages(connection) == 0
    await store.put(body(700_000))
    assert await is_there(connection, ref.digest)


async def test_chunks_of_a_program_that_died_while_it_stored_go(connection: Connection) -> None:
    store = BlobStore(connection, BUCKET)
    await connection.request(f"$O.{BUCKET}.C.abandoned", body(1000))
    await store.remove_unused((), keeps=never, before=datetime.now(UTC) - timedelta(hours=1))
    assert await messages(connection) == 1, "it may belong to a body that is being stored"
    await store.remove_unused((), keeps=never, before=later())
    assert await messages(connection) == 0


async def test_a_removal_continues_over_a_kill_of_the_broker(nats_server: EmbeddedServer) -> None:
    async with Connection.open(nats_server.url, name="blobs") as connection:
        await apply_declarations(connection, load_declarations().only(BUCKET))
        store = BlobStore(connection, BUCKET)
        refs = [await store.put(body(1000 + number)) for number in range(60)]
        removing = asyncio.create_task(store.remove_unused({refs[0].digest}, keeps=never, before=later()))

        async def begun() -> bool:
            return await messages(connection) < 110

        await wait_until(begun, every=0)
        await nats_server.kill()
        await nats_server.restart()
        with contextlib.suppress(Unavailable):  # a read is given up sooner than a write
            await asyncio.wait_for(removing, 60)
        # The broker can lose removals that it confirmed just before the kill. The next call repeats them.
        await store.remove_unused({refs[0].digest}, keeps=never, before=later())
        assert await messages(connection) == 2
        assert await is_there(connection, refs[0].digest)
