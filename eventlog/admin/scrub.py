"""Scrubbing of an event log: every record is read, and compared with the ones before it.

nats-server reports no damage by itself. It finds a bad record only when it is read, and readers skip it without an error.
So a pass looks for sequences that cannot be read, for commits that do not follow the previous one of their aggregate, and, of a
sample, for states that contradict the events.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from types import MappingProxyType
from typing import Any, Protocol
from zlib import crc32

import attrs
import msgspec
import structlog

from eventlog.commit import Commit, Registry
from eventlog.errors import EventLogError, StateLost
from eventlog.jetstream.api import MessageReader, StoredMessage
from eventlog.port import Head
from eventlog.support.chain import KEPT, LinkChecker, fingerprints, link_faults


@attrs.frozen
class Damage:
    """A finding: the sequence, the subject of the aggregate if it is known, and the problem in words.

    `elsewhere`: another server than the leader has the problem.
    """

    sequence: int
    subject: str | None
    problem: str
    elsewhere: bool = False

    def __str__(self) -> str:
        return f"sequence {self.sequence}{f', {self.subject}' if self.subject else ''}: {self.problem}"


@attrs.frozen(kw_only=True)
class ScrubPass:
    """A pass over a log: it has reached sequence `position` of `until`, and has `count` findings, of which `found` has the first.

    `ended` is None while it runs.
    """

    incarnation: str
    until: int
    started: datetime
    position: int = 0
    found: tuple[Damage, ...] = ()
    count: int = 0
    ended: datetime | None = None


@attrs.frozen
class ScrubState:
    """The passes over a log: the one that runs or ran last, and the last complete one."""

    current: ScrubPass | None
    complete: ScrubPass | None


class ScrubMemory(Protocol):
    """Keeps the state of the passes over one log while no process runs."""

    async def load(self) -> ScrubState | None:
        """The state that was kept last, or None. Raises an error if it cannot be read."""

    async def keep(self, state: ScrubState) -> None:
        """Keep a state. Raises an error if that is not possible now."""


log = structlog.get_logger(__name__)

SHARE = 0.1
"""The share of aggregates whose states are compared with their events in one pass: their last records are kept in memory."""
RATE = 1000.0
"""Records per second of a pass inside a service that has little else to do."""
_BUSY, _BUSY_RATE = 0.5, 250.0
"""Share of a processor above which a process is busy, and records per second of a pass inside it: requests have precedence."""
EVERY = 86_400.0
"""Seconds from the start of one pass to the start of the next."""

_FIRST_AFTER = 15.0
"""Seconds after the start of a service: before that nats-server may answer from its cache, which hides what is on the disk."""
_AWAY = 5.0
_LOOK_AGAIN = 30.0
"""Seconds between two looks at the findings, which may be repaired by then."""
_TOGETHER = 256
_KNOWN = 20_000
"""Aggregates whose last digest and commit are kept in memory; for others the previous record is read."""
_KEEP_EVERY = 10.0
"""Seconds between two times at which the progress of a pass is kept."""
_LOOKS = 12
"""Reads of a record that another server could not read: the server that answers is chosen at random."""
_MOST = 100
"""Findings that are kept of one pass; the rest is counted."""


Fold = Callable[[Iterable[Any], Any], Any]
"""`Decider.fold` of a category: events and the state before them give the state after them."""


def contradiction(commit: Commit, before: Commit | None, fold: Fold) -> str:
    """The difference between the state of a commit and its events, in words; empty if there is none.

    `before` is the previous commit of the aggregate, None for the first one. Tombstones, and states after a lost commit, are not
    compared.
    """
    if commit.lost is not None or not _knows_state(before):
        return ""
    try:
        state = fold([event.data for event in commit.events], _state_of(before))
        return "" if state == commit.state else _difference(state, commit.state)
    except EventLogError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - events that do not fit the state before them are a finding
        return f"its events cannot be applied to the state before them: {error!r}"


def _knows_state(before: Commit | None) -> bool:
    """Whether the state before a commit is known: after a tombstone in the middle of an aggregate it is not."""
    return before is None or (lost := before.lost) is None or lost.replaces is None


def _state_of(before: Commit | None) -> Any:
    try:
        return None if before is None else before.state
    except StateLost:  # the only commit of the aggregate was lost
        return None


def _difference(folded: Any, stored: Any) -> str:
    ours, theirs = msgspec.to_builtins(folded), msgspec.to_builtins(stored)
    names = [name for name in theirs if ours.get(name) != theirs[name]] if isinstance(ours, dict) else []
    says = "; ".join(f"its events give {name} {ours.get(name)!r}, its state says {theirs[name]!r}" for name in names)
    return says or "its state is not what its events give"  # prose: allow is-no


class CommitChecker:
    """Whether commits follow the ones before them, and whether states are what the events give. They are given in their order.

    `at` reads the commit at a sequence, None if it cannot be read. `folds` are `Decider.fold` by category: they are compared for
    a `share` of the aggregates, chosen at random. The last commits of `most` aggregates are kept.
    """

    def __init__(
        self,
        at: Callable[[int], Awaitable[Commit | None]],
        folds: Mapping[str, Fold] = MappingProxyType({}),
        *,
        share: float = 1.0,
        most: int = KEPT,
    ) -> None:
        self._at = at
        self._folds = folds
        self._share = share
        self._most = most
        self._chosen_by = random.getrandbits(32)
        self._links = LinkChecker(most)
        self._last: OrderedDict[str, Commit] = OrderedDict()

    async def problems(self, commits: Sequence[Commit], prints: Sequence[bytes]) -> Mapping[int, str]:
        """The problems of commits that follow the last ones, by sequence; `prints` are their fingerprints. Raises Unavailable."""
        faults = await link_faults(self._links.look(commits, prints), self._at)
        problems = {sequence: fault.problem for sequence, fault in faults.items()}
        for commit in commits:
            fold = self._folds.get(commit.category)
            if fold is not None and self._is_chosen(commit.subject):
                before = self._last.pop(commit.subject, None)
                self._last[commit.subject] = commit
                if commit.sequence not in problems and (text := await self._contradiction(commit, before, fold)):
                    problems[commit.sequence] = text
        while len(self._last) > self._most:
            self._last.popitem(last=False)
        return problems

    def _is_chosen(self, subject: str) -> bool:
        return crc32(subject.encode(), self._chosen_by) < self._share * 2**32

    async def _contradiction(self, commit: Commit, before: Commit | None, fold: Fold) -> str:
        if (guard := commit.guard) and (before is None or before.sequence != guard):
            before = await self._at(guard)
            if before is None:
                return ""  # that one is damaged itself
        return contradiction(commit, before, fold)


class _Load:
    """The processor time of this process."""

    def __init__(self) -> None:
        self._at, self._spent = time.monotonic(), time.process_time()

    def share(self) -> float:
        """The processors in use since the last call, on average: 1 is one processor."""
        at, spent = time.monotonic(), time.process_time()
        share = (spent - self._spent) / max(at - self._at, 0.001)
        self._at, self._spent = at, spent
        return share


@attrs.define(eq=False)
class LogScrubber:
    """Makes passes over one log. `head` gives its ends, and `memory` keeps the passes over restarts.

    The states of a `share` of the aggregates, chosen at random for each pass, are compared with their events by `folds`:
    `Decider.fold` by category. With `from_leader` all records are read from the leader, not from the server that answers first.
    """

    _reader: MessageReader
    _registry: Registry
    _head: Callable[[], Awaitable[Head]]
    _folds: Mapping[str, Fold] = attrs.field(default=MappingProxyType({}), kw_only=True)
    _share: float = attrs.field(default=SHARE, kw_only=True)
    _memory: ScrubMemory | None = attrs.field(default=None, kw_only=True)
    _from_leader: bool = attrs.field(default=False, kw_only=True)
    _at_work: bool = attrs.field(default=False, init=False)
    _kept_at: float = attrs.field(default=-inf, init=False)
    _checker: CommitChecker = attrs.field(init=False)
    current: ScrubPass | None = attrs.field(default=None, init=False)
    """The pass that runs, or that ran last; None before the first one."""
    complete: ScrubPass | None = attrs.field(default=None, init=False)
    """The last pass that came to its end."""

    def __attrs_post_init__(self) -> None:
        self._checker = self._new_checker(self._share)

    def _new_checker(self, share: float) -> CommitChecker:
        return CommitChecker(self._at, self._folds, share=share, most=_KNOWN)

    async def _at(self, sequence: int) -> Commit | None:
        """The commit at a sequence as the leader has it; None if it has none."""
        stored = await self._reader.leader({"seq": sequence})
        return None if stored is None else stored.commit(self._registry)

    @property
    def found(self) -> ScrubPass | None:
        """The pass with the newest findings: the one that runs, if it has some, else the last complete one."""
        return self.current if self.current is not None and self.current.count else self.complete

    async def run(self) -> None:
        """Make a pass a day at a bounded rate, for ever, the first one soon; an interrupted pass continues."""
        await self.recall()
        self._at_work = True
        try:
            await asyncio.sleep(_FIRST_AFTER)
            while True:
                try:
                    done = await self.scrub(rate=RATE, gives_way=True)
                except EventLogError as error:
                    log.info("scrubbing waits", reason=str(error))
                    await asyncio.sleep(_AWAY)
                else:
                    await self._rest(max(_AWAY, EVERY - (datetime.now(UTC) - done.started).total_seconds()))
        finally:
            self._at_work = False

    async def recall(self) -> None:
        """Take over the state that an earlier process, or the process that makes the passes, has kept for this stream."""
        if self._memory is None:
            return
        try:
            state, head = await self._memory.load(), await self._head()
        except EventLogError as error:
            log.info("the state of scrubbing is not known", reason=str(error))
            return
        if state is None or self._at_work:
            return
        self.current, self.complete = (
            p if p is not None and p.incarnation == head.incarnation else None for p in (state.current, state.complete)
        )

    async def _keep(self, *, at_once: bool) -> None:
        """Keep the state, `at_once` or if that is due."""
        if self._memory is None or (not at_once and time.monotonic() - self._kept_at < _KEEP_EVERY):
            return
        self._kept_at = time.monotonic()
        try:
            await self._memory.keep(ScrubState(self.current, self.complete))
        except EventLogError as error:
            log.info("the state of scrubbing is not kept", reason=str(error))

    async def _rest(self, seconds: float) -> None:
        """Wait for the next pass; the findings of the last one are looked at again until then."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.complete is None or not self.complete.count:
                await asyncio.sleep(left)
                return
            await asyncio.sleep(min(left, _LOOK_AGAIN))
            try:
                await self.look_again()
            except EventLogError as error:
                log.info("scrubbing waits", reason=str(error))

    async def look_again(self) -> None:
        """Look at the findings of the last complete pass again, and drop the repaired ones. Raises Unavailable.

        If the pass had more findings than it kept, or the stream was created again, another pass is made.
        """
        if (done := self.complete) is None or not done.count:
            return
        if done.count > len(done.found) or (await self._head()).incarnation != done.incarnation:
            await self.scrub(rate=RATE, gives_way=True)
            return
        checker = self._new_checker(1)
        still = []
        for damage in done.found:
            stored = await self._reader.certainly({"seq": damage.sequence})
            damaged = stored is None or await checker.problems([stored.commit(self._registry)], fingerprints([stored]))
            if stored is None or damaged or (damage.elsewhere and await self._is_elsewhere(damage.sequence)):
                still.append(damage)
            else:
                log.info("the log is repaired", sequence=damage.sequence, subject=stored.subject)
        self.complete = attrs.evolve(done, found=tuple(still), count=len(still))
        if self.current is done:
            self.current = self.complete
        await self._keep(at_once=len(still) < len(done.found))

    async def _is_elsewhere(self, sequence: int) -> bool:
        """Whether a server cannot read a record that the leader can read. One that was only lost on its way is no damage."""
        return any([await self._reader.direct({"seq": sequence}) is None for _ in range(_LOOKS)])

    async def scrub(self, *, rate: float | None = None, gives_way: bool = False) -> ScrubPass:
        """Make one pass, or complete the interrupted one; at most `rate` records per second. Raises Unavailable.

        `gives_way`: a pass inside a busy process takes longer.
        """
        head = await self._head()
        if self.current is None or self.current.ended is not None or self.current.incarnation != head.incarnation:
            self._checker = self._new_checker(self._share)
            self.current = ScrubPass(incarnation=head.incarnation, until=head.last, started=datetime.now(UTC))
        load = _Load()
        while self.current.position < self.current.until:
            began = time.monotonic()
            before = self.current
            self.current = await self._further(before)
            await self._keep(at_once=self.current.count > before.count)
            if rate is not None:
                allowed = min(rate, _BUSY_RATE) if gives_way and load.share() > _BUSY else rate
                await asyncio.sleep(max(0.0, (self.current.position - before.position) / allowed - (time.monotonic() - began)))
        self.current = self.complete = attrs.evolve(self.current, ended=datetime.now(UTC))
        await self._keep(at_once=True)
        log.info("log scrubbed", until=self.complete.until, damaged=self.complete.count)
        return self.complete

    async def _further(self, scrub_pass: ScrubPass) -> ScrubPass:
        """Read some more records."""
        batch = {stored.sequence: stored for stored in await self._batch(scrub_pass)}
        end = max(batch, default=min(scrub_pass.position + _TOGETHER, scrub_pass.until))
        damages: list[Damage] = []
        records: list[StoredMessage] = []
        for sequence in range(scrub_pass.position + 1, end + 1):
            stored = batch.get(sequence) or await self._reader.certainly({"seq": sequence})
            if stored is None:
                damages.append(Damage(sequence, None, "the record cannot be read"))
            else:
                records.append(stored)
        problems = await self._checker.problems([stored.commit(self._registry) for stored in records], fingerprints(records))
        for stored in records:
            sequence = stored.sequence
            if sequence in problems:
                damages.append(Damage(sequence, stored.subject, problems[sequence]))
            elif sequence not in batch and sequence < end and await self._is_elsewhere(sequence):
                problem = "a server cannot read the record, and the leader can"
                damages.append(Damage(sequence, stored.subject, problem, elsewhere=True))
        damages.sort(key=lambda damage: damage.sequence)
        for damage in damages:
            log.error("the log is damaged", sequence=damage.sequence, subject=damage.subject, problem=damage.problem)
        kept = (*scrub_pass.found, *damages)[:_MOST]
        return attrs.evolve(scrub_pass, position=end, found=kept, count=scrub_pass.count + len(damages))

    async def _batch(self, at: ScrubPass) -> Sequence[StoredMessage]:
        """The next records, as far as the server that is asked can read them."""
        if self._from_leader:
            sequences = range(at.position + 1, min(at.position + _TOGETHER, at.until) + 1)
            records = await asyncio.gather(*(self._reader.leader({"seq": sequence}) for sequence in sequences))
            return [stored for stored in records if stored is not None]
        request = {"batch": _TOGETHER, "seq": at.position + 1, "next_by_subj": ">"}
        return [stored for stored in await self._reader.several(request) if stored.sequence <= at.until]
