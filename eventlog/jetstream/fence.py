"""Whether this process may write: the stream is the one that it knows, and takes appends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import attrs

from eventlog.commit import Appended, Commit
from eventlog.errors import EventLogError, IncarnationChanged, LogDamaged, LogDiverged, LogTruncated, Unavailable
from eventlog.jetstream.api import MessageReader, check_open, incarnation_of
from eventlog.jetstream.connection import Connection
from eventlog.support.chain import digest_of

_STILL, _STILL_ON_CLUSTER = 1.0, 3.0
"""Seconds without a move; a new leader may need the longer time to apply what the old one had."""


@attrs.define
class StillLog:
    """The ends of a log at the last look, and the time since which they have not moved. `clock`: by default the loop's clock.

    A final verdict about the ends needs two looks at a log that does not move. A leader that was elected just now may not know
    its own end yet, a log that is restored or purged moves, and so does one whose server reads its files.
    """

    _clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()
    _ends: tuple[int, int] | None = None
    _since: float = 0.0

    def check(self, info: Mapping[str, Any], problem: str | None) -> None:
        """Take a look (STREAM.INFO) into account, which found a problem of the ends or none.

        Raises LogTruncated if the log has not moved for a while, Unavailable before.
        """
        if problem is None:
            self._ends = None
            return
        ends = info["state"]["first_seq"], info["state"]["last_seq"]
        if ends != self._ends:
            self._ends, self._since = ends, self._clock()
        if self._clock() - self._since < (_STILL_ON_CLUSTER if info["config"]["num_replicas"] > 1 else _STILL):
            raise Unavailable(f"{problem}; this is looked at again, since the log may move")
        raise LogTruncated(problem)


class Fence:
    """The fence of one stream: `check` before each message, `stored` after it, `read` for each commit that was read.

    `saw` takes the server's information on the stream.
    """

    def __init__(self, connection: Connection, stream: str, reader: MessageReader) -> None:
        self._connection = connection
        self._stream = stream
        self._reader = reader
        self._incarnation: str | None = None
        self._connects = self._connections()
        self._closed: LogDamaged | None = None
        self._still = StillLog()
        self.acknowledged = 0
        """The highest sequence that was acknowledged to this process, or that it has read."""
        self._digest: Callable[[], str | None] = lambda: None
        """Gives the digest of the commit there, None if it is not known. It is seldom asked for."""

    async def check(self) -> None:
        """Check that the stream is still the same. Ask the server only after a reconnect, or after a message without a taker.

        Raises LogDamaged if it is not, StreamClosed if it is being repaired, Unavailable if that cannot be known.
        """
        if self._connects != self._connections():
            connects = self._connections()
            acknowledged, digest = self.acknowledged, self._digest()  # others may append before the server answers
            info = await self._reader.info()
            check_open(info)
            self._closed = None
            self.saw(info)
            self._check_end(info, acknowledged)
            if digest is not None:
                await self._check_newest(acknowledged, digest)
            self._connects = connects
        if self._closed is not None:
            raise self._closed

    def saw(self, info: dict[str, Any]) -> None:
        """Take note of the server's information on the stream (STREAM.INFO); another incarnation closes the log."""
        found = incarnation_of(info)
        if self._incarnation is None:
            self._incarnation = found
        if found != self._incarnation:
            self._closed = IncarnationChanged(self._incarnation, found)

    def check_seen(self) -> None:
        """Check that nothing seen so far has closed the log. Raises LogDamaged."""
        if self._closed is not None:
            raise self._closed

    def stored(self, appended: Appended, before: int) -> None:
        """Take note of an acknowledgement; `before` is the highest sequence acknowledged when the commit was sent.

        Raises LogDiverged if a new commit did not take a higher one: the log lost its end, or is another one.
        """
        if not appended.replayed and appended.sequence <= before:
            self._closed = LogDiverged(before, appended.sequence)
            raise self._closed
        self._know(appended.sequence, lambda: appended.digest)

    def read(self, commit: Commit) -> None:
        """Take note of a commit that was read from the stream."""
        self._know(commit.sequence, lambda: commit.digest)

    def _know(self, sequence: int, digest: Callable[[], str | None]) -> None:
        if sequence > self.acknowledged:
            self.acknowledged, self._digest = sequence, digest

    async def _check_newest(self, sequence: int, digest: str) -> None:
        """Check that the newest known commit is still there. An unreadable record is damage of one aggregate, not another log."""
        if self._closed is not None:
            return
        found = await self._reader.leader({"seq": sequence})
        if found is not None and digest_of(found.subject, found.data) != digest:
            self._closed = LogDiverged(sequence)

    def _check_end(self, info: dict[str, Any], acknowledged: int) -> None:
        end = info["state"]["last_seq"]
        text = f"{self._stream} ends at sequence {end}, and {acknowledged} was acknowledged"
        if (
            end < acknowledged and info["config"]["num_replicas"] > 1
        ):  # a leader that was elected just now may learn its own end late
            raise Unavailable(text)
        try:
            self._still.check(info, text if end < acknowledged else None)
        except LogTruncated as error:
            self._closed = error

    def _connections(self) -> int:
        counters = self._connection.counters
        return counters.reconnects + counters.replaced + counters.untaken


WARN_AT = 0.85
"""Share of a limit from which on it is warned of."""

STREAM_FULL, STORE_FULL = 10077, 10023
"""The broker's numbers for a stream that has reached its `max_bytes`, and for its own store or an account's that is full."""

_SILENCE = 2.0
"""Seconds without an answer after which an append counts as unanswered."""
_IMPATIENCE = 1.0
"""As `_SILENCE`, for one whose caller did not wait any longer."""
_STALE = 6.0
"""Seconds after which a look at the broker says nothing about now."""
_PROOF_LASTS = 30.0
"""Seconds for which a failed append says something about now, if the broker itself cannot be looked at."""


class WriteState(StrEnum):
    """The states of appends."""

    OK = "ok"
    REFUSED = "refused"
    """The broker refused the last append, for want of room."""
    SILENT = "silent"
    """The broker does not answer appends, or has no leader that could."""
    CLOSED = "closed"
    """The broker reports that it cannot store, or it can lose stored records."""
    FULL = "full"
    """A limit is reached, though no append was refused yet."""
    UNKNOWN = "unknown"
    """There is neither a result nor a look from which it could be known."""


@attrs.frozen(kw_only=True)
class Writes:
    """Whether appends are taken. `reason`: why not, or why it is not known. `code` is the broker's error number.

    `since`: seconds for which it has been so.
    """

    state: WriteState
    reason: str = ""
    code: int | None = None
    since: float = 0.0

    @property
    def fail(self) -> bool:
        """Whether appends are known to fail."""
        return self.state not in {WriteState.OK, WriteState.UNKNOWN}


@attrs.frozen
class Room:
    """The room in a limit: bytes used of `limit`. `kind` is `stream`, `store` or `disk`, `name` is its name.

    `fewest` bytes have to be left for an append. `code` is the broker's number for the refusal then, None if it has none.
    `advice` describes how to get more room.
    """

    kind: str
    name: str
    used: int
    limit: int
    fewest: int
    code: int | None
    advice: str

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return self.limit - self.used

    @property
    def share(self) -> float:
        """How much of it is used, from 0 to 1."""
        return min(1.0, self.used / self.limit) if self.limit > 0 else 1.0

    @property
    def full(self) -> bool:
        """Whether an append does not fit any more."""
        return self.left < self.fewest

    def __str__(self) -> str:
        return f"{self.name}: {self.used:,} of {self.limit:,} bytes are used; {self.advice}"


@attrs.frozen(kw_only=True)
class Look:
    """The answers of the broker. `at`: the time of the request, by the monotonic clock.

    `server` changes when another server, or the same one after a restart, holds the stream. `monitored`: its own health was
    asked. `fault`: its own report, or why nothing may be stored in the stream. `error`: why the stream could not be asked; then
    nothing else is known.
    """

    at: float
    server: str = ""
    monitored: bool = False
    fault: str | None = None
    rooms: Sequence[Room] = ()
    error: str | None = None


@attrs.frozen(kw_only=True)
class _Trouble:
    state: WriteState
    reason: str
    code: int | None
    begun: float
    """The time at which the first of the last failed appends in a row was sent."""
    at: float
    size: int
    server: str
    outage: bool
    """The broker could not be asked either: so silence says nothing about its store."""


class WriteHealth:
    """Kept by a log for its appends, with reports of the broker's monitoring. `clock` is the monotonic clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._flying: dict[object, float] = {}
        self._acknowledged: float | None = None
        self._trouble: _Trouble | None = None
        self._look: Look | None = None
        self._unseen = self._closed = float("-inf")
        self._bad_since: float | None = None
        self.failed = asyncio.Event()
        """Set when an append fails, so that the watch of the broker looks at once."""

    @contextmanager
    def appending(self, size: int) -> Iterator[None]:
        """Count an append of `size` bytes as under way until the end of the block."""
        flight = object()
        began = self._flying[flight] = self._clock()
        try:
            yield
        except EventLogError as error:
            self._failed(error, began, size)
            raise
        except asyncio.CancelledError:
            waited = self._clock() - began
            if waited > _IMPATIENCE and self._silent_since(began):
                self._failed(Unavailable(f"the broker has not answered an append for {waited:.1f} s"), began, size)
            raise
        else:
            self._acknowledged, self._trouble, self._bad_since = self._clock(), None, None
        finally:
            del self._flying[flight]

    def _silent_since(self, moment: float) -> bool:
        return self._acknowledged is None or self._acknowledged < moment

    def _failed(self, error: EventLogError, began: float, size: int) -> None:
        if not isinstance(error, Unavailable):
            return  # the broker answered, before it came to store anything
        code = _code_of(error)
        state = WriteState.REFUSED if code in {STREAM_FULL, STORE_FULL} else WriteState.SILENT
        now = self._clock()
        before = self._trouble
        self._trouble = _Trouble(
            state=state,
            reason=str(_first_cause(error)),
            code=code,
            begun=before.begun if before is not None else began,
            at=now,
            size=size,
            server=self._look.server if self._look is not None else "",
            outage=self._unseen >= began,
        )
        self.failed.set()

    def saw(self, look: Look) -> None:
        """Take a look into account."""
        if look.error is not None:
            self._unseen = look.at
            return
        self._look = look
        if look.fault is not None:
            self._closed = self._clock()
        trouble = self._trouble
        if trouble is not None and look.at >= trouble.at and self._over(trouble, look):
            self._trouble = None

    def _over(self, trouble: _Trouble, look: Look) -> bool:
        if trouble.server and look.server != trouble.server:
            return True  # restarted, or another replica leads: its former state does not count
        if trouble.state is WriteState.REFUSED:
            asked = [room for room in look.rooms if room.code == trouble.code]
            return bool(asked) and all(room.left >= max(room.fewest, trouble.size) for room in asked)
        return (look.monitored and look.fault is None) or trouble.outage

    def now(self) -> Writes:
        """Whether appends are taken."""
        now = self._clock()
        writes = self._found(now)
        if not writes.fail:
            self._bad_since = None
            return writes
        if self._bad_since is None:
            self._bad_since = now if self._trouble is None else self._trouble.begun
        return attrs.evolve(writes, since=now - self._bad_since)

    def _found(self, now: float) -> Writes:
        look = self._look if self._look is not None and now - self._look.at < _STALE else None
        if look is not None and look.fault is not None:
            return Writes(state=WriteState.CLOSED, reason=look.fault)
        full = next((room for room in look.rooms if room.full), None) if look is not None else None
        if full is not None:
            return Writes(state=WriteState.FULL, reason=str(full))
        if (trouble := self._trouble) is not None:
            if now - trouble.at > _PROOF_LASTS and not self._flying and (look is None or not look.monitored):
                return Writes(
                    state=WriteState.UNKNOWN,
                    reason=f"the last append, {now - trouble.at:.0f} s ago, failed ({trouble.reason}); none was tried since",
                )
            return Writes(state=trouble.state, reason=trouble.reason, code=trouble.code)
        oldest = next(iter(self._flying.values()), None)
        if oldest is not None and now - max(oldest, self._acknowledged or oldest, self._closed) > _SILENCE:
            reason = f"the broker has not answered an append for {now - oldest:.0f} s"
            return Writes(state=WriteState.SILENT, reason=reason)
        if self._acknowledged is None and (look is None or not look.monitored):
            return Writes(state=WriteState.UNKNOWN, reason="no append yet, and the broker's health cannot be seen")
        return Writes(state=WriteState.OK)

    def check(self) -> None:
        """Raises Unavailable while writes are closed: an append would only wait for its deadline, or be lost."""
        look = self._look
        if look is not None and look.fault is not None and self._clock() - look.at < _STALE:
            raise Unavailable(f"nothing was stored: {look.fault}")

    def rooms(self) -> Sequence[Room]:
        """The limits, as the last look found them; none if there was none lately."""
        return self._look.rooms if self._look is not None and self._clock() - self._look.at < _STALE else ()

    def warnings(self) -> Sequence[str]:
        """The limits that are nearly reached."""
        return [
            f"{room.share:.0%} of a limit is used: {room}" for room in self.rooms() if room.share >= WARN_AT and not room.full
        ]


def _first_cause(error: BaseException) -> BaseException:
    """The first error of the chain, since its wrappers repeat its text."""
    while isinstance(error.__cause__, Unavailable):
        error = error.__cause__
    return error


def _code_of(error: BaseException | None) -> int | None:
    while error is not None:
        if isinstance(error, Unavailable) and error.code is not None:
            return error.code
        error = error.__cause__
    return None
