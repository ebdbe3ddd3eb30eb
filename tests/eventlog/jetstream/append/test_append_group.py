"""Group commit: shared if that is faster, alone if it is not, and never to the harm of a caller."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from eventlog.commit import Appended, Proposal
from eventlog.errors import Conflict, OutcomeUnknown, TooLarge, Unavailable
from eventlog.jetstream import append as group
from eventlog.jetstream.append import Ack, CostEstimate, Message
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.conformance import deposit, in_row, stored
from tests.support.log.event_stream import event_stream
from tests.support.log.nats import plain_client


@pytest_asyncio.fixture
async def log(nats_url: str) -> AsyncIterator[JetStreamLog]:
    async with Connection.open(nats_url, name="test") as connection:
        yield await event_stream(connection)


def eager(log: JetStreamLog) -> None:
    """From here on four appends that wait share a batch, whatever this machine's disk is like."""
    log.group.estimate.single = 1.0


async def test_a_lone_writer_never_waits_for_others(log: JetStreamLog) -> None:
    """One append at a time: none shares a batch."""
    for number in range(20):
        await log.append(deposit("a", expected=number))
    assert log.group.shared == 0


async def test_many_writers_share_batches(log: JetStreamLog) -> None:
    """64 writers, on a server that syncs each message: after the first appends nearly all are stored together."""

    async def write(name: str) -> None:
        expected = 0
        for _ in range(10):
            expected = (await log.append(deposit(name, expected=expected))).sequence

    await asyncio.gather(*(write(f"a{number}") for number in range(64)))
    assert log.group.shared > 320
    assert (await log.head()).last == 640


async def test_each_gets_its_own_sequence(log: JetStreamLog) -> None:
    eager(log)
    proposals = [deposit(f"a{number}") for number in range(30)]
    appended = await asyncio.gather(*map(log.append, proposals))
    assert log.group.shared == 27  # the first three had no other appends to share with
    ids = [commit.id for commit in await stored(log)]
    assert [ids[each.sequence - 1] for each in appended] == [proposal.commit.id for proposal in proposals]


async def test_a_conflict_in_a_shared_batch_is_its_own_callers_alone(log: JetStreamLog) -> None:
    """The others, whose guards hold, are stored all the same."""
    await log.append(deposit("a7"))
    eager(log)
    results = await asyncio.gather(*(log.append(deposit(f"a{number}")) for number in range(20)), return_exceptions=True)
    assert [index for index, result in enumerate(results) if isinstance(result, Conflict)] == [7]
    assert len([result for result in results if isinstance(result, Appended)]) == 19
    assert len(await stored(log)) == 20


async def test_a_repetition_in_a_shared_batch_is_answered_as_such(log: JetStreamLog) -> None:
    repeated = deposit("a7")
    await log.append(repeated)
    eager(log)
    proposals = [repeated if number == 7 else deposit(f"a{number}") for number in range(20)]
    results = await asyncio.gather(*map(log.append, proposals))
    assert results[7] == Appended(1, replayed=True)
    assert not any(result.replayed for index, result in enumerate(results) if index != 7)


async def test_two_appends_to_one_aggregate_do_not_meet_in_a_batch(log: JetStreamLog) -> None:
    """The second would fail it for all; one of the two wins, the others are not disturbed."""
    eager(log)
    names = ["x", "y", "z", *(f"a{number // 2}" for number in range(20))]  # the first three go alone
    results = await asyncio.gather(*(log.append(deposit(name)) for name in names), return_exceptions=True)
    assert [type(result) for result in results].count(Conflict) == 10
    assert log.group.shared == 10


async def test_callers_that_give_up_take_nobody_with_them(log: JetStreamLog) -> None:
    """At every moment of a shared batch: while it gathers, while it is on its way, when it is answered."""
    eager(log)
    chance = random.Random(1)
    for round_ in range(20):
        proposals = [deposit(f"r{round_}-{number}") for number in range(24)]
        tasks = [asyncio.create_task(log.append(proposal)) for proposal in proposals]
        for task in tasks[::3]:
            asyncio.get_running_loop().call_later(chance.uniform(0, 0.004), task.cancel)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for index, result in enumerate(results) if index % 3} == {Appended}
    ids = [commit.id for commit in await stored(log)]
    assert len(ids) == len(set(ids)) >= 20 * 16


async def test_each_waits_until_its_own_deadline_and_is_told_whether_it_was_sent(
    log: JetStreamLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = asyncio.Event()

    async def unanswered(sending: Callable[[], Sequence[Message]], _: float) -> Ack:
        sending()
        sent.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(log._batches, "send", unanswered)
    monkeypatch.setattr(CostEstimate, "batch_pays", lambda *_: True)
    patient = [asyncio.create_task(log.append(deposit(f"a{number}"), deadline=600)) for number in range(5)]
    hasty = asyncio.create_task(log.append(deposit("b"), deadline=0.2))
    async with asyncio.timeout(30):
        await sent.wait()
        late = asyncio.create_task(log.append(deposit("c"), deadline=0.1))
        results = await asyncio.gather(hasty, late, return_exceptions=True)
    assert [type(result) for result in results] == [OutcomeUnknown, Unavailable]
    assert not any(task.done() for task in patient)
    assert log.group._batch is not None
    for task in (*patient, log.group._batch):
        task.cancel()
    await asyncio.wait(patient)


async def test_a_row_shares_its_batch_with_others(log: JetStreamLog) -> None:
    """Two rows and 20 single appends that wait for a batch go together; a row stays in one piece."""
    log.group.estimate.lone = log.group.estimate.single = 1.0
    rows = [[deposit(name) for _ in range(10)] for name in ("x", "y")]
    appending = [asyncio.create_task(log.append_in_row(row)) for row in rows]
    await asyncio.gather(*(log.append(deposit(f"a{number}")) for number in range(20)))
    for task, row in zip(appending, rows, strict=True):
        first, *rest = await task
        assert [one.sequence for one in rest] == list(range(first.sequence + 1, first.sequence + len(row)))


async def test_a_row_takes_what_fits_a_batch(log: JetStreamLog) -> None:
    """30 commits of 300 KB: some at a time."""
    log.group.estimate.lone = 1.0
    row = [deposit("a", note="x" * 300_000) for _ in range(30)]
    assert 1 < len(await log.append_in_row(row)) < 15
    assert len(await in_row(log, row)) == 30
    assert [commit.id for commit in await stored(log)] == [proposal.commit.id for proposal in row]


async def test_a_short_row_goes_one_by_one(log: JetStreamLog) -> None:
    """A batch for it would cost more."""
    assert await log.append_in_row([deposit("a") for _ in range(3)]) == [Appended(1)]
    assert log.group.shared == 0


def pairs(count: int) -> Sequence[Sequence[Proposal]]:
    """Two new aggregates each, to be stored together."""
    return [[deposit(f"p{number}"), deposit(f"q{number}")] for number in range(count)]


async def test_commits_that_belong_together_share_a_batch_with_others(log: JetStreamLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 pairs, and then 40, need one batch. Each pair is in one piece. A pair without others is not counted."""
    sent: list[int] = []
    send = log._batches.send

    async def counted(sending: Callable[[], Sequence[Message]], left: float) -> Ack:
        def noted() -> Sequence[Message]:
            messages = sending()
            sent.append(len(messages))
            return messages

        return await send(noted, left)

    monkeypatch.setattr(log._batches, "send", counted)
    await log.append_together([deposit("a"), deposit("b")])
    assert log.group.shared == 0
    for some in (pairs(42)[:2], pairs(42)[2:]):
        for first, second in await asyncio.gather(*map(log.append_together, some)):
            assert second.sequence == first.sequence + 1
    assert sent == [2, 4, 80]
    assert log.group.shared == 84


async def test_a_conflict_of_commits_that_belong_together_is_their_own_callers_alone(log: JetStreamLog) -> None:
    """The other pairs are stored all the same, and of the refused one no commit is."""
    await log.append(deposit("q7"))
    results = await asyncio.gather(*map(log.append_together, pairs(20)), return_exceptions=True)
    assert [index for index, result in enumerate(results) if isinstance(result, Conflict)] == [7]
    assert {commit.aggregate.id for commit in await stored(log)} == {
        "q7",
        *(f"{name}{number}" for number in range(20) if number != 7 for name in "pq"),
    }


async def test_callers_that_give_up_leave_no_part_of_what_belongs_together(log: JetStreamLog) -> None:
    chance = random.Random(2)
    tasks = [asyncio.create_task(log.append_together(pair)) for pair in pairs(60)]
    for task in tasks[::3]:
        asyncio.get_running_loop().call_later(chance.uniform(0, 0.01), task.cancel)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert not any(isinstance(result, BaseException) for index, result in enumerate(results) if index % 3)
    await log.append_together([deposit("a"), deposit("b")])  # what was given up is stored before, or never
    names = [commit.aggregate.id for commit in await stored(log)]
    assert len(names) == len(set(names))
    assert {name[1:] for name in names if name[0] == "p"} == {name[1:] for name in names if name[0] == "q"}


async def test_an_append_that_was_denied_while_its_batch_waited_is_not_stored(log: JetStreamLog) -> None:
    """Another batch had the turn until the deadline: the append is not in the batch that goes out after it."""
    eager(log)
    await log.append(deposit("z"))
    await log._batches._turn.acquire()
    proposals = [deposit(f"a{number}") for number in range(12)]
    hasty = [asyncio.create_task(log.append(proposal, deadline=0.1)) for proposal in proposals[:6]]
    patient = [asyncio.create_task(log.append(proposal, deadline=30)) for proposal in proposals[6:]]
    results = await asyncio.gather(*hasty, return_exceptions=True)
    assert [type(result) for result in results[3:]] == [Unavailable] * 3  # the first three went alone
    log._batches._turn.release()
    await asyncio.gather(*patient)
    ids = {commit.id for commit in await stored(log)}
    assert not ids & {proposal.commit.id for proposal in proposals[3:6]}


async def test_a_shared_batch_is_bounded_in_bytes(log: JetStreamLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 commits of 50 KB with a bound of 256 KiB: several batches, all stored."""
    monkeypatch.setattr(group, "MOST_BYTES", 256 * 1024)
    sizes: list[int] = []
    send = log._batches.send

    async def measured(sending: Callable[[], Sequence[Message]], left: float) -> Ack:
        def counted() -> Sequence[Message]:
            messages = sending()
            sizes.append(sum(message.size for message in messages))
            return messages

        return await send(counted, left)

    monkeypatch.setattr(log._batches, "send", measured)
    eager(log)
    await asyncio.gather(*(log.append(deposit(f"a{number}", note="x" * 50_000)) for number in range(40)))
    assert len(sizes) > 5
    assert max(sizes) <= 256 * 1024
    assert (await log.head()).last == 40


async def test_one_that_is_too_large_is_refused_before_it_can_harm_the_others(log: JetStreamLog) -> None:
    eager(log)
    proposals = [deposit(f"a{number}", note="x" * (2 * 1024**2 if number == 3 else 1)) for number in range(10)]
    results = await asyncio.gather(*map(log.append, proposals), return_exceptions=True)
    assert [index for index, result in enumerate(results) if isinstance(result, TooLarge)] == [3]
    assert (await log.head()).last == 9


async def test_a_message_bears_its_id_its_guard_and_its_trace_only(log: JetStreamLog, nats_url: str) -> None:
    """Headers slow replay down, so a commit that was appended alone has no other headers."""
    await log.append(deposit("a"))
    async with plain_client(nats_url) as client:
        message = await client.jetstream().get_msg("GCTD", 1)
    assert set(message.headers or {}) == {"Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence"}


# The pace


def test_at_first_a_batch_is_taken_to_cost_as_much_as_some_fifteen_appends() -> None:
    """So that it has to be clearly more of them."""
    assert not CostEstimate().batch_pays(18)
    assert CostEstimate().batch_pays(24)


def test_a_disk_that_syncs_slowly_makes_small_batches_pay() -> None:
    """Appends take 2 ms each, batches 6 ms: six together are faster."""
    pace = CostEstimate()
    for _ in range(200):
        pace.saw_singles(16, 16 * 0.002)
        pace.saw_batch(8, 0.006)
    assert pace.batch_pays(6)


def test_a_server_that_does_not_sync_is_not_sent_batches() -> None:
    """Appends take 30 µs each."""
    pace = CostEstimate()
    for _ in range(100):
        pace.saw_singles(16, 16 * 0.00003)
    assert not pace.batch_pays(500)


def test_a_server_whose_batches_are_slow_is_not_sent_small_ones() -> None:
    """Batches take 30 ms, appends 200 µs."""
    pace = CostEstimate()
    for _ in range(100):
        pace.saw_batch(64, 0.03)
    assert not pace.batch_pays(64)


def test_a_few_stalls_change_little() -> None:
    """Of appends or of batches: a second without an answer, three times."""
    pace = CostEstimate()
    for _ in range(3):
        pace.saw_singles(16, 1.0)
        pace.saw_batch(64, 1.0)
    assert not pace.batch_pays(12)
    assert pace.batch_pays(24)


def test_what_was_seen_long_ago_is_forgotten() -> None:
    """Where only batches are used, single appends are tried again after a while, and the other way round."""
    pace = CostEstimate()
    for _ in range(200):
        pace.saw_singles(16, 16 * 0.01)
    assert pace.batch_pays(5)
    for _ in range(500):
        pace.saw_batch(8, 0.003)
    assert not pace.batch_pays(5)
    for _ in range(200):
        pace.saw_batch(64, 0.1)
    assert not pace.batch_pays(64)
    for _ in range(500):
        pace.saw_singles(16, 16 * 0.0002)
    assert pace.batch_pays(64)


def test_a_row_shares_a_batch_once_that_is_faster_than_one_by_one() -> None:
    """Appends one after the other take 0.5 ms each, batches 2.5 ms."""
    pace = CostEstimate()
    for _ in range(200):
        pace.saw_lone(0.0005)
        pace.saw_batch(12, 0.0025 + 12 * 0.00003)
    assert not pace.row_pays(6)
    assert pace.row_pays(10)


@given(st.lists(st.tuples(st.sampled_from(["single", "lone", "batch"]), st.floats(0, 10)), max_size=50), st.integers(0, 3))
def test_a_few_never_share(seen: list[tuple[str, float]], count: int) -> None:
    """With any measurements, three appends or fewer go alone, and a figure never becomes useless."""
    pace = CostEstimate()
    for kind, seconds in seen:
        if kind == "single":
            pace.saw_singles(16, seconds)
        elif kind == "lone":
            pace.saw_lone(seconds)
        else:
            pace.saw_batch(64, seconds)
    assert not pace.batch_pays(count)
    assert not pace.row_pays(count)
    assert 0 < pace.single < 2
    assert 0 < pace.lone < 2
    assert 0 < pace.batch < 2
