"""An append whose answer is lost takes effect once and is not mistaken for a conflict: alone, in a batch, in a shared batch."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import pytest_asyncio

from eventlog.commit import Appended, Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.errors import Conflict, KeyTaken, OutcomeUnknown, Unavailable
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.cluster.servers import Cluster
from tests.support.log.conformance import CATEGORY, account, deposit, in_row
from tests.support.log.event_stream import STREAM, event_stream
from tests.support.log.nats import plain_client, remove_streams
from tests.support.log.proxy import Proxy
from tests.support.log.racing import race
from tests.support.programs.processes import stand_still
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@attrs.frozen
class Site:
    """A log that is written to through a proxy, and the same log reached directly."""

    proxy: Proxy
    log: JetStreamLog
    beside: JetStreamLog
    url: str

    async def ids(self) -> Sequence[str]:
        """The ids of all commits, in order."""
        head = await self.beside.head()
        found = [await self.beside.at(sequence) for sequence in range(1, head.last + 1)]
        return [commit.id for commit in found if commit is not None]


@attrs.frozen
class Servers:
    """The address of a server, and the number of replicas of its stream."""

    url: str
    replicas: int


@asynccontextmanager
async def opened(servers: Servers, **fields: Any) -> AsyncIterator[Site]:
    async with (
        Connection.open(servers.url, name="beside") as direct,
        Proxy.before(servers.url, CATEGORY) as proxy,
        Connection.open(proxy.url, name="faulty") as connection,
    ):
        beside = await event_stream(direct, replicas=servers.replicas, **fields)
        try:
            yield Site(proxy, JetStreamLog(connection, STREAM, beside.registry), beside, servers.url)
        finally:
            await remove_streams(servers.url)


@pytest.fixture(params=[pytest.param(1, id="one node"), pytest.param(3, id="three nodes", marks=pytest.mark.long)])
def servers(request: pytest.FixtureRequest) -> Servers:
    if request.param == 1:
        return Servers(request.getfixturevalue("nats_url"), 1)
    return Servers(request.getfixturevalue("cluster").nodes[0].url, 3)


@pytest_asyncio.fixture
async def site(servers: Servers) -> AsyncIterator[Site]:
    async with opened(servers) as opened_site:
        yield opened_site


# Lost answers


async def test_a_lost_answer_is_found_out(site: Site) -> None:
    """The commit is stored once, and the caller gets its sequence: no conflict with itself."""
    await site.log.append(deposit("z"))
    site.proxy.lose_answers(1)
    proposal = deposit("a")
    assert await site.log.append(proposal) == Appended(2, replayed=True)
    assert site.proxy.struck.is_set()
    assert (await site.ids())[1:] == [proposal.commit.id]


async def test_a_lost_answer_is_found_out_though_others_have_gone_on(site: Site) -> None:
    """Another writer appends to the aggregate before we ask: ours is not the last one any more, and still ours."""
    site.proxy.open.clear()
    site.proxy.lose_answers(1)
    append = asyncio.create_task(site.log.append(deposit("a")))
    await asyncio.wait_for(site.proxy.struck.wait(), 60)
    await site.beside.append(deposit("a", expected=1))
    await site.beside.append(deposit("a", expected=2))
    site.proxy.open.set()
    assert await append == Appended(1, replayed=True)
    assert len(await site.ids()) == 3


async def test_a_conflict_behind_a_lost_answer_is_a_conflict(site: Site) -> None:
    """The message did not arrive, and another writer was first. The repetition finds the conflict."""
    site.proxy.open.clear()
    site.proxy.cut_before(1)
    append = asyncio.create_task(site.log.append(deposit("a")))
    await asyncio.wait_for(site.proxy.struck.wait(), 60)
    await site.beside.append(deposit("a"))
    site.proxy.open.set()
    with pytest.raises(Conflict):
        await append
    assert len(await site.ids()) == 1


async def test_the_lost_answer_to_a_batch_is_found_out(site: Site) -> None:
    """All of it is stored once, and each caller's sequence is right, also if an aggregate has changed since then."""
    await site.log.append(deposit("z"))
    site.proxy.open.clear()
    proposals = [deposit(f"a{number}") for number in range(20)]
    site.proxy.lose_answers(20)
    append = asyncio.create_task(site.log.append_together(proposals))
    await asyncio.wait_for(site.proxy.struck.wait(), 60)
    await site.beside.append(deposit("a7", expected=9))
    site.proxy.open.set()
    assert await append == [Appended(sequence, replayed=True) for sequence in range(2, 22)]
    assert (await site.ids())[1:21] == [proposal.commit.id for proposal in proposals]


@pytest.mark.parametrize("message", [1, 2, 10, 20])
async def test_a_batch_that_is_cut_off_is_stored_once(site: Site, message: int) -> None:
    """The connection goes when message n of 20 is about to be sent: the server forgets the half, the repetition stores all."""
    site.proxy.cut_before(message)
    proposals = [deposit(f"a{number}") for number in range(20)]
    assert await site.log.append_together(proposals) == [Appended(sequence) for sequence in range(1, 21)]
    assert site.proxy.struck.is_set()
    assert await site.ids() == [proposal.commit.id for proposal in proposals]


@pytest.mark.parametrize("message", [1, 10])
async def test_a_batch_with_a_hole_is_sent_again(site: Site, message: int) -> None:
    """A message of it is lost on the way, as when the leader changes: the server refuses the rest (10176), all is sent again."""
    site.proxy.lose_message(message)
    proposals = [deposit(f"a{number}") for number in range(20)]
    assert await site.log.append_together(proposals) == [Appended(sequence) for sequence in range(1, 21)]
    assert site.proxy.struck.is_set()


async def test_the_lost_answer_to_a_shared_batch_is_found_out_by_each(site: Site) -> None:
    """40 appends of different callers share a batch whose answer is lost: each is stored once and gets its own sequence."""
    site.log.group.estimate.single = 1.0
    site.proxy.lose_answers(40)
    proposals = [deposit(f"a{number}") for number in range(40)]
    appended = await asyncio.gather(*map(site.log.append, proposals))
    assert site.proxy.struck.is_set()
    ids = await site.ids()
    assert len(ids) == 40
    assert [ids[each.sequence - 1] for each in appended] == [proposal.commit.id for proposal in proposals]


async def test_a_shared_batch_that_is_cut_off_loses_nobody(site: Site) -> None:
    """Each append continues by itself."""
    site.log.group.estimate.single = 1.0
    site.proxy.cut_before(30)
    proposals = [deposit(f"a{number}") for number in range(40)]
    appended = await asyncio.gather(*map(site.log.append, proposals))
    assert site.proxy.struck.is_set()
    ids = await site.ids()
    assert [ids[each.sequence - 1] for each in appended] == [proposal.commit.id for proposal in proposals]


# In a row


def row_of(count: int) -> Sequence[Proposal]:
    """Commits of one aggregate, each with a key."""
    return [deposit("a", number, key=f"key-{number}") for number in range(count)]


async def test_the_lost_answer_to_a_row_is_found_out(site: Site) -> None:
    """All of it is stored once, though another writer has gone on since."""
    site.log.group.estimate.lone = 1.0
    site.proxy.open.clear()
    row = row_of(8)
    site.proxy.lose_answers(8)
    append = asyncio.create_task(site.log.append_in_row(row))
    await asyncio.wait_for(site.proxy.struck.wait(), 60)
    await site.beside.append(deposit("a", expected=8))
    site.proxy.open.set()
    assert await append == [Appended(sequence, replayed=True) for sequence in range(1, 9)]
    assert (await site.ids())[:8] == [proposal.commit.id for proposal in row]


@pytest.mark.parametrize("message", [1, 2, 8])
async def test_a_row_that_is_cut_off_is_stored_once(site: Site, message: int) -> None:
    site.log.group.estimate.lone = 1.0
    site.proxy.cut_before(message)
    row = row_of(8)
    assert await in_row(site.log, row) == [Appended(sequence) for sequence in range(1, 9)]
    assert site.proxy.struck.is_set()
    assert await site.ids() == [proposal.commit.id for proposal in row]


@pytest.mark.parametrize("key", [None, "key-5"])
async def test_a_row_that_did_not_arrive_is_refused_if_its_place_or_a_key_is_taken(site: Site, key: str | None) -> None:
    """The repetition finds out. If a key is taken, the commits before it are stored."""
    site.log.group.estimate.lone = 1.0
    site.proxy.open.clear()
    site.proxy.cut_before(1)
    row = row_of(8)
    append = asyncio.create_task(in_row(site.log, row))
    await asyncio.wait_for(site.proxy.struck.wait(), 60)
    await site.beside.append(deposit("a" if key is None else "b", key=key))
    site.proxy.open.set()
    with pytest.raises(Conflict if key is None else KeyTaken):
        await append
    assert (await site.ids())[1:] == [proposal.commit.id for proposal in row[: 0 if key is None else 5]]


async def test_after_the_deadline_a_row_is_unknown_and_repeating_is_safe(site: Site) -> None:
    site.log.group.estimate.lone = 1.0
    row = row_of(8)
    site.proxy.lose_answers(8)
    site.proxy.open.clear()
    with pytest.raises(OutcomeUnknown, match="with an idempotency key may be repeated"):
        await site.log.append_in_row(row, deadline=0.5)
    site.proxy.open.set()
    assert await in_row(site.log, row) == [Appended(sequence, replayed=True) for sequence in range(1, 9)]


# Deadlines


async def refused(append: Awaitable[object]) -> Unavailable | None:
    """Why it was refused, None if it was not."""
    try:
        await append
    except Unavailable as error:
        return error
    return None


async def test_after_the_deadline_a_lost_answer_is_unknown_and_repeating_is_safe(site: Site) -> None:
    """OutcomeUnknown, not Unavailable: it may be stored. The repetition, later, gives the sequence."""
    proposal = deposit("a")
    site.proxy.lose_answers(1)
    site.proxy.open.clear()
    with pytest.raises(OutcomeUnknown, match="with an idempotency key may be repeated"):
        await site.log.append(proposal, deadline=0.5)
    site.proxy.open.set()
    assert await site.log.append(proposal) == Appended(1, replayed=True)


async def test_after_the_deadline_a_batch_is_unknown_and_repeating_is_safe(site: Site) -> None:
    proposals = [deposit("a"), deposit("b")]
    site.proxy.lose_answers(2)
    site.proxy.open.clear()
    with pytest.raises(OutcomeUnknown, match="with an idempotency key may be repeated"):
        await site.log.append_together(proposals, deadline=0.5)
    site.proxy.open.set()
    assert await site.log.append_together(proposals) == [Appended(1, replayed=True), Appended(2, replayed=True)]


async def test_after_the_deadline_a_shared_batch_is_unknown_to_each(site: Site) -> None:
    site.log.group.estimate.single = 1.0
    proposals = [deposit(f"a{number}") for number in range(20)]
    site.proxy.lose_answers(20)
    site.proxy.open.clear()
    appends = [site.log.append(proposal, deadline=0.5) for proposal in proposals]
    results = await asyncio.gather(*appends, return_exceptions=True)
    assert [type(result) for result in results[3:]] == [OutcomeUnknown] * 17  # the first three were not in the batch
    site.proxy.open.set()
    appended = await asyncio.gather(*map(site.log.append, proposals))
    assert sorted(each.sequence for each in appended) == list(range(1, 21))
    assert all(each.replayed for each in appended[3:])


async def test_what_was_never_sent_is_unavailable(site: Site) -> None:
    """Without a connection nothing goes out, so nothing can be stored: surely not, by whichever way."""
    site.proxy.open.clear()
    site.proxy.cut()
    await wait_until(lambda: not site.log.connection.client.is_connected)
    site.log.group.estimate.single = 1.0
    appends = [site.log.append(deposit(f"a{number}"), deadline=0.3) for number in range(10)]
    appends += [site.log.append_together([deposit("b"), deposit("c")], deadline=0.3)]  # type: ignore[list-item]
    for error in await asyncio.gather(*appends, return_exceptions=True):
        assert type(error) is Unavailable, error
    site.proxy.open.set()
    await site.log.connection.up(5)
    await site.log.connection.ping()
    assert await site.ids() == []


async def test_a_paused_server_is_unknown_after_the_deadline(nats_server: EmbeddedServer) -> None:
    """SIGSTOP: the message is stored when the server continues, and the repetition returns its sequence."""
    async with Connection.open(nats_server.url, name="test") as connection:
        log = await event_stream(connection)
        proposal = deposit("a")
        await stand_still(nats_server.pid)
        try:
            with pytest.raises(OutcomeUnknown):
                await log.append(proposal, deadline=0.5)
        finally:
            os.kill(nats_server.pid, signal.SIGCONT)
        assert (await log.append(proposal)).sequence == 1
        assert (await log.head()).last == 1


async def test_a_stream_that_is_full_refuses_and_says_so(nats_url: str) -> None:
    """At once, because no repetition helps. No message is stored, and reads continue."""
    async with Connection.open(nats_url, name="test") as connection:
        log = await event_stream(connection, max_bytes="4KiB")
        async with asyncio.timeout(20):
            results = [await refused(log.append(deposit(f"a{number}", note="x" * 300))) for number in range(20)]
        assert {type(error) for error in results} == {type(None), Unavailable}
        assert "maximum bytes exceeded" in str(results[-1])
        assert await log.last(account("a0")) is not None


async def test_a_stream_that_is_not_there_is_unavailable(nats_url: str) -> None:
    async with Connection.open(nats_url, name="test") as connection:
        log = JetStreamLog(connection, "MISSING", (await event_stream(connection)).registry)
        await remove_streams(nats_url)
        for append in (log.append(deposit("a"), deadline=0.2), log.append_together([deposit("a"), deposit("b")], deadline=0.2)):
            with pytest.raises(Unavailable) as error:
                await append
            assert not isinstance(error.value, OutcomeUnknown)
        reads = (log.last(account("a")), log.last(account("a"), consistent=True), log.at(1), log.head())
        async with asyncio.timeout(20):
            for answer in await asyncio.gather(*reads, return_exceptions=True):
                assert isinstance(answer, Unavailable)
                assert not isinstance(answer, OutcomeUnknown)


# Long after


async def test_a_repetition_long_after_gives_the_same_answer(servers: Servers) -> None:
    """The broker remembers message ids for its duplicate window only (here 100 ms); the log remembers for ever."""
    async with opened(servers, duplicate_window="100ms") as site, plain_client(servers.url) as client:
        single, batch = deposit("a"), [deposit("b"), deposit("c")]
        first = await site.log.append(single)
        rest = await site.log.append_together(batch)
        for proposal in (single, *batch):
            subject = f"{CATEGORY}.probe-{proposal.aggregate.id}"
            headers = {"Nats-Msg-Id": proposal.commit.id}

            async def forgotten(subject: str = subject, headers: dict[str, str] = headers) -> bool:
                return not (await client.jetstream().publish(subject, b"{}", headers=headers)).duplicate

            await wait_until(forgotten)
        before = await site.beside.head()
        assert await site.log.append(single) == attrs.evolve(first, replayed=True)
        assert await site.log.append_together(batch) == [attrs.evolve(each, replayed=True) for each in rest]
        assert await site.beside.head() == before


async def test_batches_beyond_the_servers_limit_wait_their_turn(site: Site) -> None:
    """Another program keeps 50 batches open, so ours is refused (10210) until it lets go of them: its caller does not see it."""
    async with plain_client(site.url) as client:

        async def batch_message(batch: int, number: int) -> None:
            headers = {"Nats-Batch-Id": f"open-{batch}", "Nats-Batch-Sequence": str(number)}
            await client.request(f"{CATEGORY}.open-{batch}", b"{}", headers=headers, timeout=5)

        for batch in range(50):
            await batch_message(batch, 1)
        append = asyncio.create_task(site.log.append_together([deposit("a"), deposit("b")]))
        await asyncio.wait({append}, timeout=0.2)
        assert not append.done()
        await asyncio.gather(*(batch_message(batch, 9) for batch in range(50)))  # a gap: the server drops the batch
        assert await append == [Appended(1), Appended(2)]


# Many at once


async def test_of_a_thousand_claims_of_a_fresh_aggregate_one_wins(site: Site) -> None:
    results = await asyncio.gather(*(site.log.append(deposit("name")) for _ in range(1000)), return_exceptions=True)
    assert [type(result) for result in results].count(Appended) == 1
    assert [type(result) for result in results].count(Conflict) == 999
    assert len(await site.ids()) == 1


@pytest.mark.long
async def test_a_race_on_one_aggregate_has_one_winner_a_round(cluster: Cluster) -> None:
    """8 writers, on connections to different servers, 50 rounds, three replicas: 50 accepted, no gap in the chain."""
    connections = [Connection.open(node.url, name="race") for node in cluster.nodes]
    async with connections[0] as one, connections[1] as two, connections[2] as three:
        first = await event_stream(one, replicas=3)
        accepted = await race([JetStreamLog((one, two, three)[number % 3], STREAM, first.registry) for number in range(8)], 50)
        assert len(accepted) == 50
        assert [commit.id async for commit in first.history(account("a"))] == accepted
