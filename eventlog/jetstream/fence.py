"""Whether a stream is still the one that this process has read and written: checked before something is stored in it.

A stream that was deleted and made again, or that lost its end, has none of the aggregates whose commits are known here, or not
their last ones. The guard of an append to one of those fails by itself. What a guard does not see is a new aggregate, so the
incarnation is compared whenever the log says that there is no such aggregate, and after each reconnect. What an acknowledgement
shows too late closes the log for all that follows.
"""

from __future__ import annotations

from typing import Any

from eventlog.admin.reconcile import incarnation_of
from eventlog.commit import Appended
from eventlog.errors import IncarnationChanged, LogDamaged, LogDiverged, LogTruncated, Unavailable
from eventlog.jetstream.api import Refused, ask
from eventlog.jetstream.transport.connection import Connection


class Fence:
    """The fence of one stream: `check` before an append, `stored` after it, `saw` for what the server says of the stream."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._incarnation: str | None = None
        self._connects = self._connections()
        self._closed: LogDamaged | None = None
        self.acknowledged = 0
        """The highest sequence that was acknowledged to this process."""

    async def check(self) -> None:
        """See that the stream is the known one; asked of the server after a reconnect only.

        Raises LogDamaged where it is not, Unavailable where that cannot be known.
        """
        if self._connects != self._connections():
            connects = self._connections()
            info = await self._info()
            self._closed = None
            self.saw(info)
            self._check_end(info)
            self._connects = connects
        if self._closed is not None:
            raise self._closed

    def saw(self, info: dict[str, Any]) -> None:
        """Take note of what the server says of the stream (STREAM.INFO); another incarnation closes the log."""
        found = incarnation_of(info)
        if self._incarnation is None:
            self._incarnation = found
        if found != self._incarnation:
            self._closed = IncarnationChanged(self._incarnation, found)

    def check_seen(self) -> None:
        """See that nothing seen so far has closed the log. Raises LogDamaged."""
        if self._closed is not None:
            raise self._closed

    def stored(self, appended: Appended, before: int) -> None:
        """Take note of an acknowledgement; `before` is the highest sequence acknowledged when the commit was sent.

        Raises LogDiverged where a new commit did not take a higher one: the log lost its end, or is another one.
        """
        if not appended.replayed and appended.sequence <= before:
            self._closed = LogDiverged(before, appended.sequence)
            raise self._closed
        self.acknowledged = max(self.acknowledged, appended.sequence)

    def _check_end(self, info: dict[str, Any]) -> None:
        end = info["state"]["last_seq"]
        if end >= self.acknowledged:
            return
        text = f"{self._stream} ends at sequence {end}, and {self.acknowledged} was acknowledged"
        if info["config"]["num_replicas"] > 1:  # a leader that was elected just now may not know its own end yet
            raise Unavailable(text)
        self._closed = LogTruncated(text)

    async def _info(self) -> dict[str, Any]:
        try:
            return await ask(self._connection, f"STREAM.INFO.{self._stream}")
        except Refused as error:
            raise Unavailable(f"the stream {self._stream} cannot be written: {error.description}") from error

    def _connections(self) -> int:
        counters = self._connection.counters
        return counters.reconnects + counters.replaced
