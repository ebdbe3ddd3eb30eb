"""The chain within an aggregate: who loads one notices that its history is not the one that was stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from eventlog import AggregateDamaged, AggregateId, Commit, Context, NewCommit, NewEvent
from eventlog.commands import Commands, CommandStep
from eventlog.commands.loading import KeyUse
from eventlog.commit import Proposal
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from eventlog.port import EventLog
from eventlog.support.chain import beginning, digest_from, fingerprints, link, rolled, text_of
from eventlog.testing.memory import MemoryLog
from tests.support.log.counter import COUNTER, REGISTRY, Add, Added, Counter

ONE = AggregateId("test.counter", "one")


class NoKeys:
    """Has no key."""

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse]:
        return {}


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(REGISTRY)


async def add(log: EventLog, *amounts: int, id_: str = "one") -> None:
    """Commands of a process that remembers nothing."""
    commands = Commands(log)
    for amount in amounts:
        await commands.execute(COUNTER, id_, Add(amount=amount))


async def history(log: EventLog) -> list[Commit]:
    return [commit async for commit in log.history(ONE)]


async def test_each_commit_names_the_one_before_it(log: MemoryLog) -> None:
    """Loaded for each command, kept from one to the next, and stored together with others."""
    await add(log, 1)
    await add(log, 2, 3)
    await Commands(log).execute_together([CommandStep(COUNTER, "one", Add(amount=4)), CommandStep(COUNTER, "two", Add(amount=4))])
    found = await history(log)
    assert [commit.prev for commit in found] == [None, *(commit.digest for commit in found[:-1])]
    assert [commit.guard for commit in found] == [0, 1, 2, 3]


@pytest.mark.parametrize(("expected", "prev"), [(0, "A" * 22), (1, None)])
def test_a_proposal_names_the_commit_before_it_if_there_is_one(expected: int, prev: str | None) -> None:
    commit = NewCommit(id="c", at=datetime.now(UTC), events=(NewEvent(Added(amount=1, total=1)),), state=Counter())
    with pytest.raises(ValueError, match=f"after sequence {expected} of test.counter.one with prev="):
        Proposal(aggregate=ONE, expected=expected, commit=commit, prev=prev)


async def test_a_commit_that_was_exchanged_is_noticed_by_who_loads_the_next_one(log: MemoryLog) -> None:
    await add(log, 1, 2)
    await log.tamper(1, (await history(log))[0].data.replace(b'"amount":1', b'"amount":9'))
    with pytest.raises(AggregateDamaged, match="sequence 2: it was decided on another commit") as raised:
        await add(log, 3)
    assert raised.value.status == 503
    assert len(await history(log)) == 2


async def test_a_last_commit_that_was_exchanged_is_noticed_by_who_remembers_it(log: MemoryLog) -> None:
    commands = Commands(log)
    await commands.execute(COUNTER, "one", Add(amount=1))
    await log.tamper(1, (await history(log))[0].data.replace(b'"amount":1', b'"amount":9'))
    with pytest.raises(AggregateDamaged, match="not the commit that was stored there"):
        await commands.execute(COUNTER, "one", Add(amount=0))  # nothing to do: answered on a read


async def test_a_message_that_was_published_past_the_log_is_not_taken_for_the_state(log: MemoryLog) -> None:
    await add(log, 1)
    await log.publish(ONE.subject, (await history(log))[0].data.replace(b'"total":1', b'"total":500'))
    with pytest.raises(AggregateDamaged, match="sequence 2: it was stored without a guard"):
        await add(log, 1)


@pytest.mark.parametrize("damage", ["commit", "state"])
async def test_a_last_commit_that_cannot_be_decoded_is_damage_and_no_internal_error(log: MemoryLog, damage: str) -> None:
    await add(log, 1)
    data = (await history(log))[0].data
    await log.tamper(1, b"{" if damage == "commit" else data.replace(b'"changes":1,"total":1', b'"changes":1,"total":"one"'))
    with pytest.raises(AggregateDamaged, match="sequence 1") as raised:
        await add(log, 1)
    assert raised.value.status == 503


async def test_a_last_commit_that_cannot_be_read_is_not_absent(log: MemoryLog) -> None:
    await add(log, 1, 2)
    log.damage(2)
    with pytest.raises(AggregateDamaged):
        await add(log, 3)
    assert (await log.head()).last == 2
    log.damage(1)
    with pytest.raises(AggregateDamaged):
        await Commands(log).execute_together([CommandStep(COUNTER, "one", Add(amount=1))])


async def test_damage_of_one_aggregate_leaves_the_others_alone(log: MemoryLog) -> None:
    await add(log, 1)
    log.damage(1)
    await add(log, 1, id_="two")
    assert (await log.head()).last == 2


@pytest.mark.parametrize(("days", "said"), [(3, True), (0, False)])
async def test_a_clock_that_was_ahead_is_said_when_the_aggregate_is_loaded(log: MemoryLog, days: int, *, said: bool) -> None:
    ahead = Commands(log, now=lambda: datetime.now(UTC) + timedelta(days=days))
    await ahead.execute(COUNTER, "one", Add(amount=1))
    with capture_logs() as lines:
        await add(log, 1)
    warnings = [line for line in lines if "from the future" in line["event"]]
    assert [(line["aggregate"], line["log_level"]) for line in warnings] == ([(ONE.subject, "warning")] if said else [])


@pytest.fixture
async def on_nats(nats_url: str) -> AsyncIterator[EventLog]:
    from eventlog.admin.declarations import parse  # noqa: PLC0415 - for this one alone
    from eventlog.admin.reconcile import apply_declarations  # noqa: PLC0415 - as above

    declared = {"subjects": ["test.counter.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "1MiB"}
    async with Connection.open(nats_url, name="chain") as connection:
        await apply_declarations(connection, parse({"streams": {"CHAIN": declared}}))
        yield JetStreamLog(connection, "CHAIN", REGISTRY)


async def test_the_server_keeps_the_guard_and_the_digest_is_that_of_the_stored_bytes(on_nats: EventLog) -> None:
    """This includes commits that are stored in a batch."""
    await add(on_nats, 1, 2)
    await Commands(on_nats).execute_together(
        [CommandStep(COUNTER, "one", Add(amount=4)), CommandStep(COUNTER, "two", Add(amount=4))]
    )
    found = await history(on_nats)
    assert [commit.prev for commit in found] == [None, *(commit.digest for commit in found[:-1])]
    assert [commit.guard for commit in found] == [0, 1, 2]
    followed = [commit async for commits in on_nats.follow(after=0, until=4) for commit in commits]
    assert [commit.guard for commit in followed] == [0, 1, 2, 0]


async def test_a_commit_of_a_row_that_does_not_follow_the_message_before_it_is_damage(log: MemoryLog) -> None:
    """Its place is its guard: in another place, and after another commit, it is not taken for the state."""
    row = [(Add(amount=n), Context(key=str(n), fingerprint="f")) for n in range(1, 4)]
    await Commands(log, keys=NoKeys()).execute_in_order(COUNTER, "one", row)
    *_, last = await history(log)
    assert last.is_guarded
    assert last.guard == 2
    await log.cut(2)
    await add(log, 1, id_="two")
    await log.publish(ONE.subject, last.data, last.headers)
    with pytest.raises(AggregateDamaged, match="at sequence 4"):
        await add(log, 1)


def test_a_digest_depends_on_everything_that_is_stored() -> None:
    data = b"abc"
    digests = {link("a.b.c", data), link("a.b.d", data), link("a.b.c", b"abd"), link("a.b", b"c\0abc")}
    assert len(digests) == 4
    assert {len(digest) for digest in digests} == {22}
    made = fingerprints(Commit(n, "a.b.c", b"x" * n, REGISTRY) for n in range(1, 21))
    (other,) = fingerprints([Commit(3, "a.b.c", b"xxy", REGISTRY)])
    begin = beginning("S")
    several = (made, made[:19], made[1:], [*made[:2], other, *made[3:]], [made[1], made[0], *made[2:]], [*made[:19], other])
    assert len({rolled(begin, some) for some in several} | {rolled(beginning("T"), made)}) == 7


@given(st.lists(st.integers(0, 20), max_size=8))
def test_a_running_digest_does_not_depend_on_the_batches_and_is_read_back(batches: list[int]) -> None:
    made = fingerprints(Commit(n, "a.b.c", b"x", REGISTRY) for n in range(sum(batches)))
    digest, at = beginning("S"), 0
    for count in batches:
        digest = rolled(digest, made[at : at + count])
        at += count
        assert digest_from(text_of(digest), at) == digest
    assert digest == rolled(beginning("S"), made)


@pytest.mark.parametrize("text", ["", "zz", "ü", "A" * 42, "A" * 43 + "=", "A" * 86, "a1" * 32])
def test_another_text_is_no_running_digest(text: str) -> None:
    with pytest.raises(ValueError, match=r"ASCII|running digest"):
        digest_from(text, 16)
