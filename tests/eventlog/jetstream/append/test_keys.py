"""One idempotency key takes effect once, though two servers use it for two aggregates at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
import pytest_asyncio

from eventlog import Context, KeyReused
from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.commands import Commands
from eventlog.commands.loading import KeyUse
from eventlog.jetstream.append import CostEstimate
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.counter import COUNTER, REGISTRY, Add

pytestmark = pytest.mark.real

ROUNDS = 300
FIELDS = {"subjects": ["test.counter.*"], "allow_atomic": True, "allow_direct": True, "max_bytes": "10MiB", "incarnation": True}


class Forgetful:
    """A table of keys that has lost its rows, or that has not come so far."""

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse]:
        return {}


@pytest_asyncio.fixture
async def logs(nats_url: str) -> AsyncIterator[tuple[JetStreamLog, JetStreamLog]]:
    """The logs of two servers."""
    async with Connection.open(nats_url, name="one") as one, Connection.open(nats_url, name="two") as two:
        await apply_declarations(one, parse({"streams": {"COUNTERS": FIELDS}}))
        yield JetStreamLog(one, "COUNTERS", REGISTRY), JetStreamLog(two, "COUNTERS", REGISTRY)


async def test_one_key_for_two_aggregates_on_two_servers_takes_effect_once(logs: tuple[JetStreamLog, JetStreamLog]) -> None:
    """The other one gets the error that the key was used."""
    servers = [Commands(log, keys=Forgetful()) for log in logs]
    for round_ in range(ROUNDS):
        context = Context(key=f"key-{round_}", fingerprint="same")
        results = await asyncio.gather(
            *(
                server.execute(COUNTER, f"{name}-{round_}", Add(amount=1), context)
                for server, name in zip(servers, "ab", strict=True)
            ),
            return_exceptions=True,
        )
        assert sorted(isinstance(result, KeyReused) for result in results) == [False, True], results
    assert (await logs[0].head()).last == ROUNDS


async def test_a_repetition_is_answered_though_the_table_lost_its_row(logs: tuple[JetStreamLog, JetStreamLog]) -> None:
    """Booked once, with the first answer."""
    context = Context(key="key", fingerprint="same")
    first = await Commands(logs[0], keys=Forgetful()).execute(COUNTER, "a", Add(amount=5), context)
    again = await Commands(logs[1], keys=Forgetful()).execute(COUNTER, "a", Add(amount=5), context)
    assert (again.sequence, again.state, again.replayed) == (first.sequence, first.state, True)
    with pytest.raises(KeyReused):
        await Commands(logs[1], keys=Forgetful()).execute(COUNTER, "a", Add(amount=6), Context(key="key", fingerprint="other"))
    assert (await logs[0].head()).last == 1


async def test_also_in_one_process_that_stores_many_together(logs: tuple[JetStreamLog, JetStreamLog]) -> None:
    """Each key is used for two aggregates at once, in enough commands to share batches."""
    server = Commands(logs[0], keys=Forgetful())
    for round_ in range(3):
        work = [
            server.execute(
                COUNTER, f"{round_}-{number}-{side}", Add(amount=1), Context(key=f"{round_}-{number}", fingerprint="same")
            )
            for number in range(150)
            for side in "ab"
        ]
        results = await asyncio.gather(*work, return_exceptions=True)
        others = [result for result in results if isinstance(result, Exception) and not isinstance(result, KeyReused)]
        assert not others, others[:3]
        assert sum(isinstance(result, KeyReused) for result in results) == 150
    assert (await logs[0].head()).last == 450


async def test_also_for_each_of_several_commands_that_wait_for_one_aggregate(
    logs: tuple[JetStreamLog, JetStreamLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are stored in a row. The other server uses one of their keys for another aggregate, at the same moment."""
    monkeypatch.setattr(CostEstimate, "row_pays", lambda _, count: count > 1)
    servers = [Commands(log, keys=Forgetful()) for log in logs]
    for round_ in range(100):
        keys = [Context(key=f"{round_}-{number}", fingerprint="same") for number in range(4)]
        shared = keys[1 + round_ % 3]
        several, one = await asyncio.gather(
            servers[0].execute_in_order(COUNTER, f"a-{round_}", [(Add(amount=1), context) for context in keys]),
            asyncio.gather(servers[1].execute(COUNTER, f"b-{round_}", Add(amount=1), shared), return_exceptions=True),
        )
        refused = [answer for answer in (*several, *one) if isinstance(answer, BaseException)]
        assert [type(error) for error in refused] == [KeyReused], (several, one)
    assert logs[0].group.shared > 50
    stored = [event.context.key async for commits in logs[0].follow(after=0, until=400) for c in commits for event in c.events]
    assert len(stored) == len(set(stored)) == 400
