"""The status of a projector (state, position, lag, rate), and waiting until its tables have a sequence, without polling."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count

import attrs

from eventlog.support.timers import TimerQueue
from projections.errors import Behind

DATABASE = "the database"
"""A place of trouble, as `ProjectorProgress.trouble` takes it."""
_WINDOW = 5.0
_SAMPLE_EVERY = 0.1
_CATCHING_UP_AFTER = 1.0


class ProjectorState(StrEnum):
    """The activity of a projector."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    LIVE = "live"
    WAITING = "waiting"
    """The log or the database is away: it stays at its position, retries, and continues by itself."""
    STOPPED = "stopped"


@attrs.frozen(kw_only=True)
class ProjectorStatus:
    """A projector at one moment.

    `position` is the sequence up to which every projection is applied, `head` the last sequence of the log as last asked,
    `lag_events` the commits between them, `lag_seconds` the age of the oldest commit that is not applied (0.0: there is
    none). They are None while the log does not answer. `rate` is commits per second over the last five seconds, `applied` the
    commits since this projector began, `error` why it waits or has stopped, `since` when it entered this state. `refused` is why
    the database takes no change now, None if it does.
    """

    state: ProjectorState
    position: int
    head: int | None
    lag_events: int | None
    lag_seconds: float | None
    rate: float
    applied: int
    error: str | None
    since: datetime
    refused: str | None = None


class ProjectorProgress:
    """Keeps a projector's figures."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._state = ProjectorState.STARTING
        self._since = now()
        self._position = 0
        self._applied = 0
        self._head: int | None = None
        self._oldest: datetime | None = None
        self._behind_since: float | None = None
        self._troubles: dict[str, str] = {}
        self._failure: str | None = None
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def start(self) -> None:
        """The projector begins or restarts."""
        self._failure = None
        self._troubles.clear()
        self._enter(ProjectorState.STARTING)

    def begin(self, position: int, head: int) -> None:
        """The log and the checkpoints are known."""
        self._position, self._head = position, head
        self._update()

    def seen(self, head: int) -> None:
        """The log ends here now."""
        self._head = max(head, self._position)
        self._update()

    def blind(self) -> None:
        """The end of the log is not known."""
        self._head = None
        self._update()

    def pending(self, oldest: datetime | None, last: int) -> None:
        """Commits have been read and are about to be applied: the time of the first if known, the sequence of the last."""
        self._oldest = oldest
        if self._head is not None:
            self._head = max(self._head, last)

    def advance(self, position: int, applied: int) -> None:
        """That many commits have been applied."""
        self._position = position
        self._applied += applied
        self._oldest = None
        moment = time.monotonic()
        if moment - self._samples[-1][0] >= _SAMPLE_EVERY:
            self._samples.append((moment, self._applied))
        self._update()

    def trouble(self, where: str, error: Exception | None) -> None:
        """`where` (the log, the store) fails for now; None: it works (again)."""
        if error is not None:
            self._troubles[where] = str(error)
        elif where in self._troubles:
            del self._troubles[where]
        else:
            return
        self._update()

    def stop(self, error: Exception | None) -> None:
        """The projector has ended, for good if there is an error."""
        self._failure = None if error is None else str(error)
        self._enter(ProjectorState.STOPPED)

    def status(self) -> ProjectorStatus:
        """The figures now."""
        lag = None if self._head is None else max(0, self._head - self._position)
        return ProjectorStatus(
            state=self._state,
            position=self._position,
            head=self._head,
            lag_events=lag,
            lag_seconds=None if lag is None else self._lag_seconds(),
            rate=self._rate(),
            applied=self._applied,
            error=self._failure or "; ".join(self._troubles.values()) or None,
            since=self._since,
            refused=self._troubles.get(DATABASE),
        )

    def _update(self) -> None:
        if self._state is ProjectorState.STOPPED:
            return
        if self._head is None or self._position >= self._head:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = time.monotonic()
        if self._troubles:
            self._enter(ProjectorState.WAITING)
        elif self._behind_since is None:
            self._enter(ProjectorState.LIVE if self._head is not None else ProjectorState.STARTING)
        elif self._state is not ProjectorState.LIVE or self._lag_seconds() > _CATCHING_UP_AFTER:
            self._enter(ProjectorState.CATCHING_UP)

    def _enter(self, state: ProjectorState) -> None:
        if state is not self._state:
            self._state, self._since = state, self._now()

    def _lag_seconds(self) -> float:
        if self._oldest is not None:
            return max(0.0, (self._now() - self._oldest).total_seconds())
        return 0.0 if self._behind_since is None else time.monotonic() - self._behind_since

    def _rate(self) -> float:
        moment = time.monotonic()
        while len(self._samples) > 1 and moment - self._samples[0][0] > _WINDOW:
            self._samples.popleft()
        begin, applied = self._samples[0]
        return (self._applied - applied) / max(moment - begin, _SAMPLE_EVERY)


class PositionWaiters:
    """Waiters for sequences, and the position that has been reached."""

    def __init__(self) -> None:
        self.reached = 0
        self._failure: Exception | None = None
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        """The waiters, of which some may have given up; always the same list."""
        self._order = count()
        self._timers: dict[float, TimerQueue] = {}
        self._given_up = 0

    def advance(self, sequence: int) -> None:
        """Wake the waiters of sequences up to `sequence`, which can be read now.

        It is lower than before if a projection restarts.
        """
        self.reached = sequence
        while self.waiting and self.waiting[0][0] <= sequence:
            _, _, future = heapq.heappop(self.waiting)
            if future.done():
                self._given_up -= 1
            else:
                future.set_result(None)

    def begin(self) -> None:
        """It may be reached again."""
        self._failure = None

    def fail(self, error: Exception) -> None:
        """No sequence will be reached any more: present and later waiters get `error`."""
        self._failure = error
        for _, _, future in self.waiting:
            if not future.done():
                future.set_exception(error)
        self.waiting.clear()
        self._given_up = 0

    async def wait(self, sequence: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the promise: Behind, in that time
        """Return when `sequence` is reached. Raises Behind after `timeout` seconds, or the error of `fail`."""
        if self.reached >= sequence:
            return
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self.waiting, (sequence, next(self._order), future))
        timers = self._timers.get(timeout)
        if timers is None:
            timers = self._timers[timeout] = TimerQueue(timeout)
        number = timers.set(lambda: self._expire(future, sequence, timeout))
        try:
            await future
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            timers.clear(number)

    def _expire(self, future: asyncio.Future[None], sequence: int, timeout: float) -> None:
        if not future.done():
            text = f"the read model is at sequence {self.reached}, {sequence} was asked for and not reached within {timeout:g} s"
            future.set_exception(Behind(text))
            self._give_up()

    def _give_up(self) -> None:
        """Note a useless entry, and drop these entries once they are the majority: behind a stopped projector they gather."""
        self._given_up += 1
        if self._given_up * 2 > len(self.waiting):
            self.waiting[:] = [entry for entry in self.waiting if not entry[2].done()]
            heapq.heapify(self.waiting)
            self._given_up = 0
