"""The log of an attempt: published during the work, stored at its end.

Writing to it never waits and never fails. If the broker is away, lines are published later, or not at all. The text kept here
is stored at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import attrs
import structlog

from eventlog import EventLogError, Unavailable
from eventlog.jetstream import Full
from gctd.broker.attempt_logs import name_of
from gctd.broker.blobs import Blobs
from gctd.broker.text_streams import TextStreams
from gctd.domain.task.events import AttemptLog
from gctd.worker.attempts.log_text import BoundedText, readable

_log = structlog.get_logger(__name__)

_OWN = ">>>"
"""Prefix of the worker's own lines."""

EVERY = 0.4
"""Seconds between two chunks that are published, at least."""
SLOWER = 2.0
"""The same once the beginning of the log is full."""
LARGEST_CHUNK = 64 * 1024
TRICKLE = 4 * 1024
"""Bytes of a chunk then: the newest lines."""
MOST_LIVE = 1024 * 1024
"""Bytes that are published of one log."""
PATIENCE = 30.0
"""Seconds for which storing is tried while the broker is away."""


@attrs.frozen(kw_only=True)
class LogTargets:
    """Targets of logs: the stream for followers, and the blobs for storage."""

    transcripts: TextStreams
    blobs: Blobs

    def of(self, task_id: str, attempt: int) -> Recording:
        """The log of an attempt, empty."""
        return Recording(name_of(task_id, attempt), self)


class Recording:
    """The log of one attempt while that lasts. Without `logs` it goes nowhere."""

    def __init__(self, name: str = "", logs: LogTargets | None = None) -> None:
        self._name = name
        self._logs = logs
        self._text = BoundedText()
        self._news = asyncio.Event()
        self._worth_keeping = False
        self._published = 0
        self._sent = 0
        self._open = False
        self._publishing: asyncio.Task[None] | None = None

    def line(self, text: str) -> None:
        """Add a line. A line that looks like one of the worker's lines is marked, so output of tests never passes for it."""
        self._worth_keeping = True
        text = readable(text)
        self._add(f"| {text}" if text.lstrip().startswith(_OWN) else text)

    def mark(self, text: str) -> None:
        """Add a line of the worker, with the time: the beginning of a stage, or the end of the attempt."""
        self._add(f"{_OWN} {datetime.now(UTC).strftime('%Y-%m-%dT%H:%M:%SZ')} {text}")

    def completed(self) -> None:
        """Add that the attempt has a result, if the log is kept."""
        if self._worth_keeping:
            self.mark("completed")

    def failed(self, reason: str) -> None:
        """Add the reason of a failed attempt."""
        self._worth_keeping = True
        self.mark(f"failed: {reason}")

    def _add(self, text: str) -> None:
        self._text.append(readable(text).encode(errors="replace") + b"\n")
        self._news.set()
        if self._open and self._publishing is None and self._logs is not None:
            self._publishing = asyncio.create_task(self._publish(self._logs.transcripts))

    @asynccontextmanager
    async def published(self) -> AsyncIterator[None]:
        """Publish the log during the block, from its first line on."""
        self._open = True
        try:
            yield
        finally:
            self._open = False
            if self._publishing is not None:
                self._publishing.cancel()
                (outcome,) = await asyncio.gather(self._publishing, return_exceptions=True)
                if isinstance(outcome, Exception):
                    _log.error("log of an attempt was not published to its end", name=self._name, exc_info=outcome)

    async def _publish(self, transcripts: TextStreams) -> None:
        silent = False
        while self._sent < MOST_LIVE:
            await self._news.wait()
            self._news.clear()
            await asyncio.sleep(EVERY if self._text.whole else SLOWER)
            try:
                while self._published < self._text.size and self._sent < MOST_LIVE:
                    await self._publish_some(transcripts)
            except EventLogError as error:
                if not silent:
                    _log.warning("log of an attempt is not published for now", name=self._name, error=str(error))
                silent = True
                self._news.set()
            else:
                silent = False

    async def _publish_some(self, transcripts: TextStreams) -> None:
        """The next of the beginning; behind it the newest lines only."""
        offset, data = self._published, self._text.beginning(self._published, LARGEST_CHUNK)
        if not data:
            offset, data = self._text.newest(self._published, TRICKLE)
        if data:
            await transcripts.append(self._name, offset, data)
        self._published = offset + len(data)
        self._sent += len(data)

    async def stored(self) -> AttemptLog | None:
        """Store the kept text. Return None if it has only stages (the attempt has them itself), or if storing fails."""
        if self._logs is None or not self._worth_keeping:
            return None
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                blob = await self._logs.blobs.put(self._text.kept())
            except EventLogError as error:
                away = isinstance(error, Unavailable) and not isinstance(error, Full)
                if away and asyncio.get_running_loop().time() < until:
                    await asyncio.sleep(EVERY)
                    continue
                _log.warning("log of an attempt is not stored", name=self._name, error=str(error))
                return None
            return AttemptLog(digest=blob.digest, size=blob.size, cut=self._text.cut, cut_at=self._text.cut_at)
