"""A question that is lost on its way, as one to a leader that died is, is asked again at once; a commit is stored once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

import attrs
import pytest
from structlog.testing import capture_logs

from eventlog.commit import Appended
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.conformance import CATEGORY, account, deposit
from tests.support.log.event_stream import STREAM, event_stream
from tests.support.log.nats import remove_streams
from tests.support.log.proxy import Proxy

pytestmark = pytest.mark.real


@attrs.frozen
class Site:
    """A log with one commit, `a`'s, reached through a proxy that counts what is sent to certain subjects."""

    proxy: Proxy
    log: JetStreamLog


@asynccontextmanager
async def opened(url: str, subjects: str) -> AsyncIterator[Site]:
    async with (
        Connection.open(url, name="beside") as direct,
        Proxy.before(url, subjects) as proxy,
        Connection.open(proxy.url, name="asks") as connection,
    ):
        beside = await event_stream(direct)
        await beside.append(deposit("a"))
        try:
            yield Site(proxy, JetStreamLog(connection, STREAM, beside.registry))
        finally:
            await remove_streams(url)


async def head(log: JetStreamLog) -> int:
    return (await log.head()).last


async def last(log: JetStreamLog) -> int:
    found = await log.last(account("a"))
    return 0 if found is None else found.sequence


async def last_of_the_leader(log: JetStreamLog) -> int:
    found = await log.last(account("a"), consistent=True)
    return 0 if found is None else found.sequence


async def followed(log: JetStreamLog) -> int:
    """Return the first commit of a reader that did not have to restart."""
    with capture_logs() as lines:
        commits: Any = log.follow(after=0)
        async with aclosing(commits) as reading:
            first: int = (await anext(reading))[0].sequence
    assert [line for line in lines if line["event"] == "reading interrupted"] == []
    return first


@pytest.mark.parametrize(
    ("subjects", "ask"),
    [
        ("$JS.API.STREAM.INFO.", head),
        ("$JS.API.DIRECT.GET.", last),
        ("$JS.API.STREAM.MSG.GET.", last_of_the_leader),
        ("$JS.API.STREAM.INFO.", followed),
        ("$JS.API.CONSUMER.CREATE.", followed),
    ],
)
async def test_a_lost_question_is_asked_again(
    nats_url: str, subjects: str, ask: Callable[[JetStreamLog], Coroutine[Any, Any, int]]
) -> None:
    """The repetition is within the time of one question: no caller gets an error, and no reader restarts."""
    async with opened(nats_url, subjects) as site:
        site.proxy.lose_message(1)
        assert await ask(site.log) == 1
        assert site.proxy.struck.is_set()


async def test_a_lost_commit_is_sent_again_and_stored_once(nats_url: str) -> None:
    """The loss is not reported. The sender repeats the commit under its guard and its id, and so finds that it is missing."""
    async with opened(nats_url, CATEGORY) as site:
        site.proxy.lose_message(1)
        assert await site.log.append(deposit("b")) == Appended(2)
        assert site.proxy.struck.is_set()
        assert (await site.log.head()).last == 2
