"""Everybody who reads commits gives the same answer to: does this commit follow the one before it of its aggregate?

Six places ask: who loads an aggregate, the projector, a pass of the scrubber, an audit, the check of a copy, and a repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eventlog import AggregateDamaged, AggregateId, Commit
from eventlog.admin import diagnosis
from eventlog.admin.backup import CopyDamaged, StreamCopy, _Reading
from eventlog.admin.diagnosis import Diagnosis, Witness
from eventlog.admin.scrub import LogScrubber
from eventlog.commands.loading import Loader
from eventlog.jetstream.api import StoredMessage
from eventlog.support.chain import CommitLost
from eventlog.testing.memory import MemoryLog
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import audit
from projections.stores.sqlite import SQLiteStore
from tests.support.log.linked import stray, written
from tests.support.readside.ledger import CATEGORY, MODEL, REGISTRY

A1, B2 = written(1, "a", None), written(2, "b", None)
A3 = written(3, "a", A1)
LOST = CommitLost(sequence=3, operator="ann", reason="a bad disk", replaces="q83vEjRWeJCrze8SNFZ4kA")
TOMBSTONE = written(3, "a", A1, id_="lost-3", event=LOST)
UNKNOWING = written(3, "a", A1, id_="lost-3", event=CommitLost(sequence=3, operator="ann", reason="a bad disk"))
Case = tuple[Sequence[Commit], str | None, int]
"""Commits, parts of the reason for which the last is refused (None: it is not), and the sequence that a repair replaces."""
CASES: Mapping[str, Case] = {
    "follows": ([A3, written(4, "a", A3)], None, 0),
    "follows in a row": ([A3, written(4, "a", A3, in_row=True)], None, 0),
    "first": ([written(3, "c", None)], None, 0),
    "tombstone": ([TOMBSTONE, written(4, "a", TOMBSTONE)], None, 0),
    "tombstone without the digest": ([UNKNOWING, written(4, "a", UNKNOWING)], None, 0),
    "tombstone after another": ([written(3, "a", B2, guard=1, id_="lost-3", event=LOST)], "decided on another", 1),
    "first with prev": ([written(3, "c", B2, guard=0)], "as the first", 3),
    "first of an old one": ([written(3, "a", None)], "as the first", 3),
    "no prev": ([written(3, "a", None, guard=1)], "does not name", 3),
    "no prev in a row": ([A3, written(4, "a", None, in_row=True)], "does not name", 4),
    "wrong digest": ([written(3, "a", B2, guard=1)], "decided on another", 1),
    "second of one": ([A3, written(4, "a", A1)], "its guard", 4),
    "guard of another": ([written(3, "a", A1, guard=2)], "its guard", 3),
    "row after another": ([written(3, "a", A1, in_row=True)], "its guard", 3),
    "stray": ([stray(3, "a", A1)], "without a guard", 3),
    "undecodable": ([REGISTRY.commit(3, A1.subject, b'{"id":"', A3.headers)], "cannot be decoded", 3),
}


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    commits, reason, damaged = request.param
    return [A1, B2, *commits], reason, damaged


class Reader:
    """Reads the records of a list as `MessageReader` does."""

    def __init__(self, commits: Sequence[Commit], unreadable: int = 0) -> None:
        self.stored = [
            StoredMessage(one.subject, one.sequence, one.data, one.headers) for one in commits if one.sequence != unreadable
        ]

    async def several(self, request: Mapping[str, Any]) -> Sequence[StoredMessage]:
        return [one for one in self.stored if one.sequence >= request["seq"]]

    async def leader(self, request: Mapping[str, Any]) -> StoredMessage | None:
        return next((one for one in self.stored if one.sequence == request["seq"]), None)

    certainly = direct = leader


async def memory(commits: Sequence[Commit]) -> MemoryLog:
    log = MemoryLog(REGISTRY)
    for commit in commits:
        await log.publish(commit.subject, commit.data, commit.headers)
    return log


async def loaded(commits: Sequence[Commit]) -> str | None:
    """A process loads the aggregate after each of its commits, as it does between its commands."""
    log, subject = await memory(()), commits[-1].subject
    loader = Loader(log, lambda: datetime.now(UTC))
    for commit in commits:
        await log.publish(commit.subject, commit.data, commit.headers)
        if commit.subject == subject and (commit.lost is None or commit is commits[-1]):  # else it has no state
            try:
                await loader.load(AggregateId.parse(subject), fresh=True)
            except AggregateDamaged as error:
                return str(error)
    return None


async def test_who_loads_an_aggregate(case: Case) -> None:
    commits, reason, _ = case
    assert_says(await loaded(commits), reason)


async def test_the_projector(case: Case, tmp_path: Path) -> None:
    commits, reason, _ = case
    log = await memory(commits)
    async with SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, MODEL).up()
        await Projector(log, store, MODEL).run(until=len(commits))
        problems = {one.error for one in await store.parked() if one.projection == "accounts"}
    assert_says(" ".join(problems), reason)


async def test_a_pass_of_the_scrubber(case: Case) -> None:
    commits, reason, _ = case
    log = await memory(commits)
    done = await LogScrubber(Reader(commits), REGISTRY, log.head).scrub()  # type: ignore[arg-type]
    assert_says(" ".join(map(str, done.found)), reason)


async def test_an_audit(case: Case) -> None:
    commits, reason, _ = case
    found = await audit(await memory(commits), MODEL, until=len(commits))
    assert_says(" ".join(found.problems), reason)


def test_the_check_of_a_copy(case: Case) -> None:
    commits, reason, _ = case
    assert_says(copied(commits, len(commits)), reason)


def copied(commits: Sequence[Commit], count: int, unreadable: int = 0) -> str | None:
    state = {"first_seq": 1, "last_seq": count, "messages": count}
    reading = _Reading(StreamCopy(stream="LEDGER", last=count, messages=count, bytes=0, sha256="", config={}, state=state))
    reading.take(Reader(commits, unreadable).stored)
    try:
        reading.end()
    except CopyDamaged as error:
        return str(error)
    return None


async def faults_of(commits: Sequence[Commit], monkeypatch: pytest.MonkeyPatch, unreadable: int = 0) -> Diagnosis:
    monkeypatch.setattr(diagnosis, "MessageReader", lambda *_: Reader(commits, unreadable))
    found = Diagnosis()
    await found.read(None, "LEDGER", len(commits), Witness())  # type: ignore[arg-type]
    return found


async def test_a_repair(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the record that is to be written again: the one before, if that one has changed."""
    commits, reason, damaged = case
    found = await faults_of(commits, monkeypatch)
    assert list(found.faults) == ([damaged] if reason else [])


async def test_a_commit_whose_predecessor_cannot_be_read_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That one is damaged itself. No command is decided on such a commit, and a repair learns the aggregate and the digest."""
    commits = [A1, B2, A3]
    log = await memory(commits)
    log.damage(1)
    with pytest.raises(AggregateDamaged, match="at sequence 1: this commit cannot be read"):
        await Loader(log, lambda: datetime.now(UTC)).load(AggregateId(CATEGORY, "a"), fresh=True)
    done = await LogScrubber(Reader(commits, 1), REGISTRY, log.head).scrub()  # type: ignore[arg-type]
    assert [str(one) for one in done.found] == ["sequence 1: the record cannot be read"]
    faults = (await faults_of(commits, monkeypatch, 1)).faults
    assert {one.sequence: (one.subject, one.digest) for one in faults.values()} == {1: (A1.subject, A1.digest)}
    problem = copied(commits, 3, 1)
    assert problem is not None
    assert "1 of 3 records cannot be read: sequences 1. " in problem


def assert_says(problem: str | None, reason: str | None) -> None:
    assert reason in problem if reason and problem else not problem and not reason
