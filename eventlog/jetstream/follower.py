"""Following a stream: from any sequence on, in order, without a hole, over whatever happens to the broker."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import structlog

from eventlog.commit import AggregateId, Commit
from eventlog.errors import AggregateDamaged, IncarnationChanged, LogDiverged, SequenceGap, Unavailable
from eventlog.jetstream.api import Refused, incarnation_of
from eventlog.jetstream.fence import StillLog
from eventlog.jetstream.message_reader import MessageReader
from eventlog.jetstream.pull import ConsumerLost, Hole, Pull
from eventlog.jetstream.transport.connection import Connection
from eventlog.registry import Registry
from eventlog.support.chain import digest_of

log = structlog.get_logger(__name__)

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_MOMENT = 0.25
"""Seconds without a commit of an aggregate after which is looked whether the stream has passed the end of the reading."""
_SILENT = 1.0
"""Seconds without a commit after which is looked whether the next one can be read at all."""


@attrs.define(eq=False)
class Follower:
    """Follows a stream as `eventlog.port.EventLog.follow` promises it, over any number of consumers. `last` is as far as it came.

    `incarnation` is the one that the sequence to begin after was true for; without it the one that the stream has at the first
    look. `proof` is the digest of the commit there. Each consumer begins with the commit that was read last, which has to be the
    same one: commit ids are unique and a log grows at its end only, so that finds every log that was cut and has grown again.
    """

    _connection: Connection
    _stream: str
    _registry: Registry
    last: int = attrs.field(alias="after", kw_only=True)
    _until: int | None = attrs.field(default=None, kw_only=True)
    _aggregate: AggregateId | None = attrs.field(default=None, kw_only=True)
    _batch: int = attrs.field(default=1000, kw_only=True)
    _incarnation: str | None = attrs.field(default=None, kw_only=True)
    _proof: str | None = attrs.field(default=None, kw_only=True)
    _reads: MessageReader = attrs.field(init=False)
    _read_last: Commit | None = attrs.field(default=None, init=False)
    _overlaps: bool = attrs.field(default=False, init=False)
    _end: int = attrs.field(default=0, init=False)
    _still: StillLog = attrs.field(factory=StillLog, init=False)
    _suspect: Hole | None = attrs.field(default=None, init=False)
    _done: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reads = MessageReader(self._connection, self._stream)
        self._done = self._until is not None and self._until <= self.last

    async def lists(self) -> AsyncIterator[Sequence[Commit]]:
        """The commits. A stream that is not there is waited for, like a broker that is not.

        Close the generator (`aclose`, or `contextlib.aclosing`) to be rid of the consumer at once.
        """
        pause = _SHORTEST_PAUSE
        while not self._done:
            try:
                async with await self._open() as pull:
                    async for commits in self._read(pull):
                        pause = _SHORTEST_PAUSE
                        yield commits
            except Hole as error:
                log.warning(
                    "a sequence is missing, looking again", stream=self._stream, expected=error.expected, found=error.found
                )
                self._suspect = error
            except (ConsumerLost, Unavailable, Refused) as error:
                if isinstance(error, Refused) and not error.passing:
                    raise
                report = log.info if pause == _SHORTEST_PAUSE else log.debug
                report("reading interrupted", stream=self._stream, after=self.last, reason=str(error))
                await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - jitter, not a secret
                pause = min(2 * pause, _LONGEST_PAUSE)
                with contextlib.suppress(Unavailable):
                    await self._connection.up(_LONGEST_PAUSE)

    async def _open(self) -> Pull:
        """A consumer, not yet made, from the last commit on; of a stream that still is what was read before.

        Raises LogDamaged if it is not, Unavailable.
        """
        info = await self._reads.info()
        found = incarnation_of(info)
        if self._incarnation is None:
            self._incarnation = found
        if found != self._incarnation:
            raise IncarnationChanged(self._incarnation, found)
        self._end = info["state"]["last_seq"]
        await self._check_hole()
        if self._aggregate is None:
            self._still.check(info, self._problem(info))
            there = info["state"]["messages"] and info["state"]["first_seq"] <= self.last
            self._overlaps = bool(there and self._known() is not None)
        subject = self._aggregate.subject if self._aggregate else None
        after = self.last - self._overlaps
        return Pull(self._connection, self._stream, self._registry, after=after, subject=subject, batch=self._batch)

    def _known(self) -> str | None:
        """The digest of the commit that was read last; None if it is not known."""
        return self._proof if self._read_last is None else self._read_last.digest

    async def _read(self, pull: Pull) -> AsyncIterator[Sequence[Commit]]:
        """The commits of a consumer, up to `until`; ends but is not `done` if another consumer has to find the rest."""
        if self._aggregate is not None and self._until is not None:
            async for commits in self._read_some(pull, self._aggregate, self._until):
                yield commits
            return
        while not self._done:
            commits = await pull.read(patience=_SILENT if self._expects else None)
            if not commits:
                await self._check_silence()
                continue
            if self._overlaps:
                self._overlaps = False
                if commits[0].digest != self._known():
                    raise LogDiverged(self.last)
                del commits[0]
                if not commits:
                    continue
            if self._until is not None and commits[-1].sequence >= self._until:
                del commits[len(commits) - (commits[-1].sequence - self._until) :]
                self._done = True
            self._read_last = commits[-1]
            self.last = commits[-1].sequence
            yield commits

    @property
    def _wanted(self) -> int:
        """The sequence of the next commit that the consumer has to give."""
        return self.last + 1 - self._overlaps

    @property
    def _expects(self) -> bool:
        """Whether a commit is to come that the stream had at the last look, or up to which it is read.

        That is not known of one aggregate: the next commit of the stream may be of another one.
        """
        return self._aggregate is None and (self._end >= self._wanted or self._until is not None)

    async def _check_silence(self) -> None:
        """Nothing came for a moment: see whether the leader has the next commit, and cannot read it, or has lost its end.

        A consumer leaves out a commit that cannot be read, and begins in vain behind the end. Raises SequenceGap, LogDamaged.
        """
        wanted = self._wanted
        if self._until is not None and self._end < wanted:
            self._end = (await self._reads.info())["state"]["last_seq"]
        if self._end < wanted:
            return
        found = await self._reads.certainly({"seq": wanted})
        if found is None:
            info = await self._reads.info()
            self._still.check(info, self._problem(info))
            if info["state"]["last_seq"] >= wanted:
                raise SequenceGap(wanted, None)
        elif self._overlaps and digest_of(found.subject, found.data) != self._known():
            raise LogDiverged(self.last)  # the consumer begins with this commit: the delivery was lost

    async def _read_some(self, pull: Pull, aggregate: AggregateId, until: int) -> AsyncIterator[Sequence[Commit]]:
        """One aggregate's commits up to `until`.

        The server that has the consumer may be behind, and leaves out what it cannot read. So the leader is asked whether one is
        left, when the stream has passed `until`. Raises Hole, AggregateDamaged.
        """
        left, passed = pull.total, self._end >= until
        while not self._done:
            commits = await pull.read(patience=_MOMENT) if left > 0 or not passed else []
            passed = passed or (not commits and (await self._reads.info())["state"]["last_seq"] >= until)
            if not commits and passed:
                following = await self._next_of(aggregate)
                if following is None and left > 0:
                    raise AggregateDamaged(aggregate.subject, 0, "the server counts messages of it, and cannot read the last one")
                self._done = following is None or following > until
                left = max(left, 1)
                continue
            left -= len(commits)
            wanted, hole = self._joined([commit for commit in commits if commit.sequence <= until])
            if wanted:
                self.last = wanted[-1].sequence
                yield wanted
            if hole is not None:
                raise hole
            self._done = len(wanted) < len(commits)

    def _joined(self, commits: Sequence[Commit]) -> tuple[Sequence[Commit], Hole | None]:
        """The first commits of an aggregate, each with a guard that names the one before it; and the hole behind them."""
        last = self.last
        for index, commit in enumerate(commits):
            if (guard := commit.guard or 0) > last:
                return commits[:index], Hole(guard, commit.sequence)
            last = commit.sequence
        return commits, None

    async def _next_of(self, aggregate: AggregateId) -> int | None:
        """The sequence of the next commit of an aggregate that the leader can read."""
        request = {"next_by_subj": aggregate.subject, "seq": self.last + 1}
        found = await self._reads.certainly(request)
        return None if found is None else found.sequence

    def _problem(self, info: dict[str, Any]) -> str | None:
        """Why reading cannot continue between the ends of the stream; None if it can."""
        state = info["state"]
        end = state["last_seq"]
        first = state["first_seq"] if state["messages"] else end + 1
        if self.last < first - 1:
            return f"{self._stream} begins at sequence {first}, reading had to continue after {self.last}"
        if 0 < self.last < first and self._known() is not None:
            return f"{self._stream} begins at sequence {first}, and sequence {self.last} was read from it before"
        if self.last > end:
            return f"{self._stream} ends at sequence {end}, reading had to continue after {self.last}"
        return None

    async def _check_hole(self) -> None:
        """Whether what a consumer left out is missing from the stream too, by the word of its leader. Raises SequenceGap."""
        if self._suspect is None:
            return
        if await self._reads.certainly({"seq": self._suspect.expected}) is None:
            raise SequenceGap(self._suspect.expected, self._suspect.found)
        self._suspect = None
