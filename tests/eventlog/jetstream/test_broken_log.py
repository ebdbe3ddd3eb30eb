"""Following a log with a hole, a log that was cut, or another log: the reader stops with an error."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from eventlog import IncarnationChanged, LogTruncated, SequenceGap
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import call, incarnation_of
from eventlog.jetstream.connection import Connection
from tests.support.log.bulk import STREAM, bulk_stream, fill
from tests.support.log.reading import Reading, following, sequences

pytestmark = pytest.mark.real


async def test_a_hole_stops_the_reader(connection: Connection) -> None:
    """Up to it everything is given; neither it nor anything behind it."""
    await bulk_stream(connection)
    await fill(connection, 1000)
    await call(connection, f"STREAM.MSG.DELETE.{STREAM}", {"seq": 500})
    reading = Reading(connection, batch=64)
    error = await reading.fails()
    assert isinstance(error, SequenceGap)
    assert (error.expected, error.found) == (500, 501)
    assert reading.sequences == list(range(1, 500))


async def test_a_hole_where_reading_begins_stops_the_reader(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 10)
    await call(connection, f"STREAM.MSG.DELETE.{STREAM}", {"seq": 6})
    with pytest.raises(SequenceGap):
        await sequences(following(connection, after=5))


async def test_a_stream_that_begins_later_is_truncated(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 100)
    await call(connection, f"STREAM.PURGE.{STREAM}", {"seq": 50})
    with pytest.raises(LogTruncated, match="begins at sequence 50"):
        await sequences(following(connection, after=48))
    assert await sequences(following(connection, after=49, until=60)) == list(range(50, 61))
    await call(connection, f"STREAM.PURGE.{STREAM}")
    with pytest.raises(LogTruncated, match="begins at sequence 101"):
        await sequences(following(connection, after=99))


async def test_a_stream_that_ends_earlier_is_truncated(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 10)
    with pytest.raises(LogTruncated, match="ends at sequence 10"):
        await sequences(following(connection, after=11))


async def test_a_stream_created_anew_while_following_is_another_one(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 10)
    reading = Reading(connection)
    await reading.reaches(10)
    await call(connection, f"STREAM.DELETE.{STREAM}")
    await bulk_stream(connection)
    await fill(connection, 20)
    error = await reading.fails()
    assert isinstance(error, IncarnationChanged)
    assert reading.sequences == list(range(1, 11))


async def test_a_wiped_store_is_another_log(nats_server: EmbeddedServer, own: Connection) -> None:
    """The broker comes back empty (fault F19); while the stream is missing the reader waits, then it refuses."""
    await bulk_stream(own)
    await fill(own, 10)
    reading = Reading(own)
    await reading.reaches(10)
    await nats_server.kill()
    await asyncio.to_thread(shutil.rmtree, nats_server.data_dir / "jetstream")
    await nats_server.restart()
    await own.up(5)
    await asyncio.wait({reading.task}, timeout=0.5)
    assert not reading.task.done()
    await bulk_stream(own)
    await fill(own, 20)
    assert isinstance(await reading.fails(), IncarnationChanged)
    assert reading.sequences == list(range(1, 11))


async def test_a_checkpoint_of_another_incarnation_is_refused_at_once(connection: Connection) -> None:
    await bulk_stream(connection)
    await fill(connection, 10)
    incarnation = incarnation_of(await call(connection, f"STREAM.INFO.{STREAM}"))
    assert await sequences(following(connection, after=5, until=10, incarnation=incarnation)) == [6, 7, 8, 9, 10]
    with pytest.raises(IncarnationChanged, match="expected other"):
        await sequences(following(connection, after=5, incarnation="other"))
