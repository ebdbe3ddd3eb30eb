"""Whether a stream is still the one that this process has read and written: checked before an append.

A stream that was deleted and recreated, or that lost its end, lacks the aggregates whose commits are known here, or their
last ones. The guard of an append to one of them fails by itself. A guard does not see a new aggregate, so the
incarnation is compared if the log reports that there is no such aggregate, and after each reconnect. Nor does a guard see that
another commit has the sequence of a lost one, so after each reconnect the newest commit that is known here is compared too. If an
acknowledgement shows the change too late, the log is closed for all later appends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from eventlog.commit import Appended, Commit
from eventlog.errors import IncarnationChanged, LogDamaged, LogDiverged, LogTruncated, Unavailable
from eventlog.jetstream.api import check_open, incarnation_of
from eventlog.jetstream.message_reader import MessageReader
from eventlog.jetstream.transport.connection import Connection
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

    def __init__(self, connection: Connection, stream: str, reads: MessageReader) -> None:
        self._connection = connection
        self._stream = stream
        self._reads = reads
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
            info = await self._reads.info()
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
        found = await self._reads.leader({"seq": sequence})
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
