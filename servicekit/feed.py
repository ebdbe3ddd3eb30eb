"""From the projector to the event stream: clients see the events of applied commits, in order.

`CommitFrames` makes frames of commits. Live commits and commits from the log give the same frames. `Feed` publishes the frames
of the commits that the projector has applied.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import structlog

from eventlog import (
    AggregateId,
    Commit,
    Decider,
    EventLog,
    EventLogError,
    LogDamaged,
    Position,
    SequenceGap,
    Unavailable,
    UndecodableCommit,
)
from eventlog.commit import RecordedEvent
from httpkit.sse.frames import LAST_INDEX, Frame
from httpkit.sse.hub import Hub

_log = structlog.get_logger(__name__)

MOST_WAITING = 20_000
"""Commits that may wait to be shown; beyond that (an import, a read model that catches up) clients read them from the log."""
AT_A_TIME = 500
BACK_OFF = 1.0


@attrs.frozen(kw_only=True)
class EventChange:
    """One event of a commit, with the state of its aggregate before and after it.

    `before` is None if the aggregate did not exist, or if the commit does not need it (see `CommitFrames`).
    """

    aggregate: AggregateId
    event: RecordedEvent
    before: Any
    after: Any
    sequence: int


@attrs.frozen(eq=False)
class CommitFrames:
    """Makes frames of commits: `show` gives the frames of each event, in order.

    A client resumes after the place of a frame. So a frame that is not after the previous one of its commit gets the next place.

    `deciders` by category: commits of other categories have no frames. `show` gets the state before each event of a commit with
    several events, and of a commit that `needs_previous_state`. This costs a read of the log.
    """

    _log: EventLog
    _deciders: Mapping[str, Decider[Any, Any, Any]]
    _show: Callable[[EventChange], Iterable[Frame]]
    _needs_previous_state: Callable[[Commit], bool] = attrs.field(default=lambda _: False, kw_only=True)

    async def of(self, commits: Sequence[Commit]) -> list[Frame]:
        """The frames of these commits, in order.

        A tombstone has none, and neither has a commit that cannot be read, whose aggregate the projector parks. Raises
        SequenceGap if the log cannot read the record before a commit, whose state is needed, and Unavailable.
        """
        frames: list[Frame] = []
        for commit in commits:
            if commit.lost is not None or commit.category not in self._deciders:
                continue
            try:
                found = list(_in_places(frame for happened in await self._happened(commit) for frame in self._show(happened)))
            except UndecodableCommit as error:
                _log.warning("a commit cannot be shown", sequence=commit.sequence, reason=str(error))
            else:
                frames += found
        return frames

    async def replay(self, after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
        """The frames after a position, up to sequence `until`, from the log. Raises Unavailable, LogDamaged."""
        # The commit of the position is included if it may hold later events.
        first = after.sequence if after.index == LAST_INDEX else max(0, after.sequence - 1)
        async for commits in self._log.follow(after=first, until=until):
            frames = [frame for frame in await self.of(commits) if frame.position > after]
            if frames:
                yield frames

    async def _happened(self, commit: Commit) -> Sequence[EventChange]:
        events, state = await self._log.decrypt(commit), commit.state
        change = partial(EventChange, aggregate=commit.aggregate, sequence=commit.sequence)
        if len(events) == 1 and not self._needs_previous_state(commit):
            return (change(event=events[0], before=None, after=state),)
        decider = self._deciders[commit.category]
        before = await self._state_at(commit.guard) if commit.guard else None
        happened = []
        for event in events:
            after = decider.fold((event.data,), before)
            happened.append(change(event=event, before=before, after=after))
            before = after
        return happened

    async def _state_at(self, sequence: int) -> Any:
        commit = await self._log.at(sequence)
        if commit is not None:
            return commit.state
        if (await self._log.head()).last < sequence:  # a leader that was elected just now may not know its own end yet
            raise Unavailable(f"sequence {sequence} cannot be read now")
        raise SequenceGap(sequence, None)


def _in_places(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames of one commit, each at a later place than the one before."""
    last: Position | None = None
    for frame in frames:
        placed = frame
        if last is not None and frame.position <= last:
            placed = attrs.evolve(frame, position=Position(last.sequence, last.index + 1))
        last = placed.position
        yield placed


class Feed:
    """Publishes frames of applied commits while `run` runs."""

    def __init__(self, frames: CommitFrames, hub: Hub) -> None:
        self._frames = frames
        self._hub = hub
        self._waiting: deque[Commit] = deque()
        self._news = asyncio.Event()
        self._last = 0

    def applied(self, commits: Sequence[Commit]) -> None:
        """These commits can be read now. Called by the projector, after each of its transactions."""
        self._last = commits[-1].sequence
        if not self._waiting and self._hub.has_no_clients:
            self._hub.skip_to(self._last)
            return
        self._waiting.extend(commits)
        self._news.set()

    async def run(self) -> None:
        """Publish until cancelled. `hub` has been started."""
        try:
            await self._run()
        except Exception:
            self._skip()
            raise

    def _skip(self) -> None:
        """Clients read from the log what was not published."""
        self._waiting.clear()
        self._hub.skip_to(self._last)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                if len(self._waiting) > MOST_WAITING:
                    _log.info("event stream continues from the log", skipped=len(self._waiting), sequence=self._last)
                    self._skip()
                elif self._hub.has_no_clients:  # no frames are made: a later client gets them from the log
                    self._skip()
                some = [self._waiting.popleft() for _ in range(min(AT_A_TIME, len(self._waiting)))]
                await self._publish([commit for commit in some if commit.sequence > self._hub.sequence])
                await asyncio.sleep(0)

    async def _publish(self, commits: Sequence[Commit]) -> None:
        while commits:
            try:
                self._hub.publish(await self._frames.of(commits), commits[-1].sequence)
            except LogDamaged as error:
                # Waiting would hold up the events of all aggregates. Clients come back, and get a reset.
                _log.error("events cannot be shown: clients load their state once more", reason=str(error))
                self._hub.skip_to(commits[-1].sequence)
                return
            except EventLogError as error:
                # Earlier states and encrypted data need the log. The frames wait for it, so that no event is left out.
                _log.warning("event stream waits", error=str(error))
                await asyncio.sleep(BACK_OFF)
            else:
                return
