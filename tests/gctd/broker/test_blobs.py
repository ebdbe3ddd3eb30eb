"""Blobs are read back under their digest and by name. A damaged blob is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha256

import pytest
import pytest_asyncio
from nats.js.object_store import ObjectStore

from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import BlobMissing, TooLarge, Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.broker.blobs import BlobRef, Blobs, BlobStore, MemoryBlobs
from gctd.broker.objects import Description, ObjectBucket
from tests.support.pace import within
from tests.support.waiting import wait_until

BUCKET = "gctd-blobs"
STREAM = f"OBJ_{BUCKET}"
MOST = 6_000_000
PATH = "coverage/0123abcd/cmd/tool/9f1c.out"


def body(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with Connection.open(nats_url, name="blobs") as connection:
        await apply_declarations(connection, load_declarations().only(BUCKET))
        yield connection


@pytest.fixture(params=[pytest.param("jetstream", marks=pytest.mark.real), "memory"])
def blobs(request: pytest.FixtureRequest) -> Blobs:
    """An empty store of either kind; the one in memory needs no server."""
    if request.param == "memory":
        return MemoryBlobs(most=MOST)
    return BlobStore(request.getfixturevalue("connection"), BUCKET, most=MOST)


async def stored(connection: Connection) -> int:
    """Messages in the bucket: chunks and descriptions."""
    count: int = (await call(connection, f"STREAM.INFO.{STREAM}"))["state"]["messages"]
    return count


async def by_nats_py(connection: Connection) -> ObjectStore:
    return await connection.client.jetstream().object_store(BUCKET)


# The port


@pytest.mark.parametrize("size", [0, 1, 512 * 1024, 512 * 1024 + 1, 5_000_000])
async def test_a_body_comes_out_as_it_went_in(blobs: Blobs, request: pytest.FixtureRequest, size: int) -> None:
    data = body(size)
    ref = await blobs.put(data)
    assert ref == BlobRef(sha256(data).hexdigest(), size)
    assert await blobs.get(ref.digest) == data
    if isinstance(blobs, BlobStore):
        other = BlobStore(request.getfixturevalue("connection"), BUCKET)
        assert await other.get(ref.digest) == data, "it comes from the server, not from memory"


async def test_a_body_that_was_never_stored_is_missing(blobs: Blobs) -> None:
    for digest in (sha256(b"nothing").hexdigest(), "", "no digest", "../*"):
        with pytest.raises(BlobMissing):
            await blobs.get(digest)


async def test_a_name_leads_to_a_body_and_may_lead_to_another_one_later(blobs: Blobs) -> None:
    assert await blobs.resolve(PATH) is None
    first, second = await blobs.put(body(10)), await blobs.put(body(20))
    await blobs.link(PATH, first)
    assert await blobs.resolve(PATH) == first
    await blobs.link(PATH, second)
    assert await blobs.resolve(PATH) == second
    assert await blobs.get(first.digest) == body(10)


async def test_a_name_cannot_lead_to_nothing(blobs: Blobs) -> None:
    ref = await blobs.put(body(10))
    for wrong in (BlobRef.of(body(11)), BlobRef(ref.digest, 11)):
        with pytest.raises(BlobMissing):
            await blobs.link(PATH, wrong)
    assert await blobs.resolve(PATH) is None


async def test_a_body_over_the_bound_is_refused(blobs: Blobs) -> None:
    await blobs.put(bytes(MOST))
    with pytest.raises(TooLarge, match=f"{MOST + 1} bytes"):
        await blobs.put(bytes(MOST + 1))


# In a bucket


async def test_a_body_that_is_there_is_not_sent_again(connection: Connection) -> None:
    """Only its description is: with the present time."""
    await BlobStore(connection, BUCKET).put(body(1_000_000))
    before = (await call(connection, f"STREAM.INFO.{STREAM}"))["state"]
    await BlobStore(connection, BUCKET).put(body(1_000_000))
    after = (await call(connection, f"STREAM.INFO.{STREAM}"))["state"]
    assert (after["last_seq"], after["messages"], after["bytes"]) == (before["last_seq"] + 1, before["messages"], before["bytes"])


async def test_other_clients_find_bodies_and_names(connection: Connection) -> None:
    """ADR-20, as nats-py reads it."""
    store = BlobStore(connection, BUCKET)
    ref = await store.put(body(1_500_000))
    await store.link(PATH, ref)
    bucket = await by_nats_py(connection)
    assert (await bucket.get(f"sha256-{ref.digest}")).data == body(1_500_000)
    assert (await bucket.get(PATH)).data == body(1_500_000)


async def test_bodies_of_other_clients_are_found(connection: Connection) -> None:
    ref = BlobRef.of(body(700_000))
    await (await by_nats_py(connection)).put(f"sha256-{ref.digest}", body(700_000))
    store = BlobStore(connection, BUCKET)
    assert await store.get(ref.digest) == body(700_000)
    await store.link(PATH, ref)
    assert await store.resolve(PATH) == ref


async def test_a_deleted_body_is_missing_and_may_be_stored_again(connection: Connection) -> None:
    ref = await BlobStore(connection, BUCKET).put(body(1000))
    await (await by_nats_py(connection)).delete(f"sha256-{ref.digest}")
    with pytest.raises(BlobMissing):
        await BlobStore(connection, BUCKET).get(ref.digest)
    await BlobStore(connection, BUCKET).put(body(1000))
    assert await BlobStore(connection, BUCKET).get(ref.digest) == body(1000)


async def test_a_body_that_does_not_have_its_digest_is_not_given_out(connection: Connection) -> None:
    ref = BlobRef.of(body(1000))
    await (await by_nats_py(connection)).put(f"sha256-{ref.digest}", body(1001))
    with pytest.raises(BlobMissing, match="another digest"):
        await BlobStore(connection, BUCKET).get(ref.digest)


async def test_a_body_of_which_parts_are_missing_is_not_given_out_and_may_be_stored_again(connection: Connection) -> None:
    ref = await BlobStore(connection, BUCKET).put(body(1_500_000))
    await call(connection, f"STREAM.MSG.DELETE.{STREAM}", {"seq": 2})
    with pytest.raises(BlobMissing, match="parts"):
        await BlobStore(connection, BUCKET).get(ref.digest)
    await BlobStore(connection, BUCKET).put(body(1_500_000))
    assert await BlobStore(connection, BUCKET).get(ref.digest) == body(1_500_000)
    assert await stored(connection) == 4  # what was left of the first is gone


async def test_the_same_body_from_many_sides_at_once_is_stored_once(connection: Connection) -> None:
    refs = await asyncio.gather(*(BlobStore(connection, BUCKET).put(body(1_500_000)) for _ in range(8)))
    assert set(refs) == {BlobRef.of(body(1_500_000))}
    assert await stored(connection) == 4


async def test_a_store_that_is_cancelled_leaves_nothing_behind(connection: Connection) -> None:
    chance, before, cancelled = random.Random(3), 0, 0
    for number in range(50):
        data = body(5_000_000 + number)
        putting = asyncio.create_task(BlobStore(connection, BUCKET).put(data))
        await wait_until(partial(grown, connection, before), every=0)
        await asyncio.sleep(chance.uniform(0, 0.005))
        putting.cancel()
        await asyncio.wait({putting})
        if await stored(connection) == before:
            cancelled += putting.cancelled()
            if cancelled == 10:
                return
        else:  # the cancellation came too late, on a busy machine: then the body is there as a whole
            assert await BlobStore(connection, BUCKET).get(BlobRef.of(data).digest) == data
            before = await stored(connection)
    raise AssertionError(f"cancelled {cancelled} of 10 times")


async def test_a_store_that_is_cancelled_while_its_description_is_stored_is_whole(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description names chunks, so they must not be removed."""
    put_description = ObjectBucket._put_description

    async def cancelled_after(self: ObjectBucket, description: Description, expected: int) -> int | None:
        await put_description(self, description, expected)
        raise asyncio.CancelledError

    monkeypatch.setattr(ObjectBucket, "_put_description", cancelled_after)
    with pytest.raises(asyncio.CancelledError):
        await BlobStore(connection, BUCKET).put(body(1_500_000))
    monkeypatch.undo()
    assert await stored(connection) == 4
    assert await BlobStore(connection, BUCKET).get(BlobRef.of(body(1_500_000)).digest) == body(1_500_000)


async def grown(connection: Connection, before: int) -> bool:
    return await stored(connection) > before


async def test_a_bucket_that_is_full_says_so(connection: Connection) -> None:
    await apply_declarations(connection, load_declarations(overrides={BUCKET: {"max_bytes": "1MiB"}}).only(BUCKET))
    with pytest.raises(Unavailable, match=r"no room.*maximum bytes exceeded"), within(10):
        await BlobStore(connection, BUCKET).put(body(2_000_000))
    await BlobStore(connection, BUCKET).put(body(1000))


async def test_names_that_no_subject_can_bear_are_refused(connection: Connection) -> None:
    store = BlobStore(connection, BUCKET)
    ref = await store.put(b"x")
    for name in ("", "x" * 2049):
        with pytest.raises(ValueError, match="1 to 2048 bytes"):
            await store.link(name, ref)


async def test_a_body_is_stored_over_a_kill_of_the_broker(nats_server: EmbeddedServer) -> None:
    async with Connection.open(nats_server.url, name="blobs") as connection:
        await apply_declarations(connection, load_declarations().only(BUCKET))
        putting = asyncio.create_task(BlobStore(connection, BUCKET).put(body(5_000_000)))
        await wait_until(lambda: stored(connection), every=0)
        await nats_server.kill()
        await nats_server.restart()
        ref = await asyncio.wait_for(putting, 60)
        assert await BlobStore(connection, BUCKET).get(ref.digest) == body(5_000_000)
        assert await stored(connection) == 11


async def test_without_a_broker_reading_ends_soon(nats_server: EmbeddedServer) -> None:
    """A blob that was read before is still returned, because it never changes."""
    async with Connection.open(nats_server.url, name="blobs") as connection:
        await apply_declarations(connection, load_declarations().only(BUCKET))
        store = BlobStore(connection, BUCKET)
        ref = await store.put(body(1000))
        await nats_server.kill()
        assert await store.get(ref.digest) == body(1000)
        with within(10):
            reads = BlobStore(connection, BUCKET).get(ref.digest), store.resolve(PATH)
            results = await asyncio.gather(*reads, return_exceptions=True)
        assert all(isinstance(result, Unavailable) for result in results)
