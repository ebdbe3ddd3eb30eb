"""Simulated runs, and the shortest way to each hole that they found (docs/explanation/event-log.md, The simulator)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain

import pytest

from eventlog import AggregateId, LogDiverged, NewCommit, NewEvent, OutcomeUnknown, Registry
from eventlog.commit import Appended, Proposal
from eventlog.jetstream.log import JetStreamLog
from httpkit.routes import Scope
from servicekit.access.tokens import TokenModel, TokenOffice, register
from tests.simulator.accounts import CATEGORY, REGISTRY, STREAM, Account, Moved
from tests.simulator.broker import Broker
from tests.simulator.faults import DAMAGING, PASSING
from tests.simulator.mutants import MUTANTS
from tests.simulator.simulation import first_failing, run
from tests.simulator.stream import Stream
from tests.support import ROOT
from tests.support.log.virtual_time import VirtualTimeLoop

SEEDS = range(1, 61)
FOUND = (84, 188, 399, 500, 586, 1084, 1283, 2041, 8125, 9124, 10300, 10335, 12231, 12856)
"""Seeds that once found a hole, in the system or in the model of it."""
FRESH, PARTS = 200, 4
"""Runs with new seeds, and the tests that share them."""
report_of = cache(run)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_in_the_fixed_seeds(part: int) -> None:
    assert [report for number in SEEDS[part::PARTS] if (report := report_of(number)).violations] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_in_fresh_seeds(part: int, seed: int) -> None:
    report = first_failing(range(seed + part, seed + FRESH, PARTS))
    assert report is None, report


@pytest.mark.parametrize("number", FOUND)
def test_a_seed_that_once_found_a_hole_finds_none(number: int) -> None:
    report = run(number)
    assert not report.violations, report


def test_the_fixed_seeds_inject_every_fault_and_most_requests_take_effect() -> None:
    """A simulator in which nothing happens finds nothing."""
    reports = [report_of(number) for number in SEEDS]
    injected = set(chain.from_iterable(report.faults for report in reports))
    assert injected == {fault.__name__ for fault in (*PASSING, *DAMAGING)}
    sound = [report for report in reports if report.damaged is None]
    assert len(sound) > len(reports) / 3
    assert sum(report.done for report in sound) > 10 * len(sound)


def test_a_seed_replays_exactly_and_another_one_does_not() -> None:
    first, again, other = run(7), run(7), run(8)
    assert first == again
    assert first.digest != other.digest


@pytest.mark.real
def test_a_seed_replays_exactly_in_another_process() -> None:
    """Neither the hashes of texts nor the addresses of objects may matter."""
    program = "from tests.simulator.simulation import run; print(run(11).digest)"
    environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "3"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == run(11).digest


KNOWN = {
    "skipped-guard": (1, "its state has"),
    "reversed-events": (1, "are the fold of no log"),
    "forgotten-fence": (91, "the newest is"),
    "early-acknowledgement": (2, "is not in the log"),
    "checkpoint-outside": (1, "are the fold of no log"),
    "dropped-incarnation": (9, "which knew the stream before"),
}
"""Of each bug a seed that finds it, and a part of the violation. If it does not after a change of the code, others are tried."""


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_that_is_put_in_on_purpose_is_found_within_1000_runs(name: str) -> None:
    seed, words = KNOWN[name]
    with MUTANTS[name]():
        report = first_failing(chain([seed], range(1, 1000)))
    assert report is not None, f"{name} is not found"
    assert any(words in violation for violation in report.violations), report
    assert not run(report.seed).violations, "without the bug the same seed breaks nothing"


def simulated(
    scenario: Callable[[Broker, JetStreamLog], Awaitable[None]], *, replicas: int = 1, registry: Registry = REGISTRY
) -> None:
    """Run a scenario of one process."""
    loop = VirtualTimeLoop(1)
    broker = Broker(loop, Stream(STREAM, replicas=replicas))

    async def main() -> None:
        connection = await broker.connect("one").connection()
        await scenario(broker, JetStreamLog(connection, STREAM, registry))

    loop.run_until_complete(main())
    loop.close()


def booking(account: str, id_: str = "first", *, expected: int = 0, prev: str | None = None) -> Proposal:
    """A booking on an account."""
    events = (NewEvent(Moved(amount=5)),)
    state = Account(balance=5, movements=1)
    commit = NewCommit(id=f"{id_}-of-{account}", at=datetime(2026, 1, 1, tzinfo=UTC), events=events, state=state)
    return Proposal(aggregate=AggregateId(CATEGORY, account), expected=expected, commit=commit, prev=prev)


async def stored_without_an_answer(broker: Broker, sending: Awaitable[object], damaged: int = 1) -> asyncio.Future[object]:
    """An append that is stored, whose answer is lost, and of which a record cannot be read when it is sent again."""
    broker.loss = 1.0
    appending = asyncio.ensure_future(sending)
    await asyncio.sleep(0.5)
    assert broker.stream.records
    broker.stream.flip(damaged)
    broker.loss = 0.0
    return appending


def test_a_commit_that_was_stored_without_an_answer_and_cannot_be_read_is_not_denied() -> None:
    """A conflict would mean that it is not stored: the command would be refused, and it has taken effect."""

    async def scenario(broker: Broker, log: JetStreamLog) -> None:
        appending = await stored_without_an_answer(broker, log.append(booking("a"), deadline=6))
        with pytest.raises(OutcomeUnknown):
            await appending

    simulated(scenario)


def test_a_batch_that_was_stored_without_an_answer_and_cannot_be_read_is_not_denied() -> None:
    async def scenario(broker: Broker, log: JetStreamLog) -> None:
        appending = await stored_without_an_answer(broker, log.append_together([booking("a"), booking("b")], deadline=8))
        with pytest.raises(OutcomeUnknown):
            await appending

    simulated(scenario)


@pytest.mark.parametrize("damaged", [1, 3, 4])
def test_a_row_that_was_stored_without_an_answer_and_cannot_be_read_is_not_denied(damaged: int) -> None:
    """Whichever commit of it is damaged: a part of it would be decided again, and take effect twice."""

    async def scenario(broker: Broker, log: JetStreamLog) -> None:
        log.group.estimate.lone = 1.0
        row = [booking("a", str(number)) for number in range(4)]
        appending = await stored_without_an_answer(broker, log.append_in_row(row, deadline=8), damaged)
        with pytest.raises(OutcomeUnknown):
            await appending
        assert len(broker.stream.records) == 4

    simulated(scenario)


def test_an_append_that_is_sent_again_after_a_reconnect_is_not_stored_after_another_commit() -> None:
    """The log was cut and has grown to the same sequence since: the guard fits, and the commit before is another one."""

    async def scenario(broker: Broker, log: JetStreamLog) -> None:
        first = await log.append(booking("a"))
        broker.loss = 1.0
        broker.stream.latched = True  # the first try has no effect and no answer
        again = booking("a", "second", expected=first.sequence, prev=first.digest)
        appending = asyncio.ensure_future(log.append(again, deadline=6))
        await asyncio.sleep(0.5)
        broker.stream.cut(0, 0.0)
        broker.restart(0.1, unclean=False)
        broker.loss = 0.0
        other = JetStreamLog(await broker.connect("two").connection(), STREAM, REGISTRY)
        await other.append(booking("a", "other"))
        with pytest.raises(OutcomeUnknown, match="sequence 1 is another commit now"):
            await appending
        with pytest.raises(LogDiverged):
            await log.append(again)
        assert len(broker.stream.records) == 1

    simulated(scenario)


def test_an_aggregate_as_it_was_is_true_if_the_replica_that_answers_is_behind() -> None:
    """That replica has an older commit: the state at an earlier moment."""

    async def scenario(broker: Broker, log: JetStreamLog) -> None:
        last = Appended(0)
        for number in range(4):
            last = await log.append(booking("a", str(number), expected=last.sequence, prev=last.digest))
        broker.lag = 4
        for up_to in [*range(1, 7)] * 20:
            found = await log.last(AggregateId(CATEGORY, "a"), up_to=up_to)
            assert found is not None
            assert found.sequence == min(up_to, 4)

    simulated(scenario, replicas=3)


def test_a_list_of_tokens_has_no_valid_one_that_is_revoked_if_the_replica_that_answers_is_behind() -> None:
    tokens, registry = TokenModel.of("bank"), Registry()
    register(registry, tokens.decider.category)

    async def scenario(broker: Broker, log: JetStreamLog) -> None:
        office = TokenOffice(tokens, log, actor="operator:test")
        made = await office.issue("ci", Scope.READ, timedelta(days=1))
        await office.revoke(made.token.id)
        broker.lag = 1
        for _ in range(20):
            [shown] = await office.tokens()
            assert shown.revoked_at is not None

    simulated(scenario, replicas=3, registry=registry)
