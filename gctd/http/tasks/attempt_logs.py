"""The logs of attempts for readers: as a text, and as a stream that continues until the attempt is over.

While an attempt lasts, its log is read from the stream that the worker publishes it on. Once it is stored, it is read from the
blobs. A place in a log is an offset in bytes of the whole text, the same in both, so a returning reader misses no line.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import attrs
import structlog

from eventlog import BlobMissing, Commit, EventLogError
from gctd.broker.attempt_logs import left_out, name_of
from gctd.broker.blobs import Blobs
from gctd.broker.text_streams import TextChunk, TextStreams
from gctd.domain.errors import NotFound
from gctd.domain.task.events import AttemptLog
from gctd.readmodel.attempts import AttemptView
from gctd.readmodel.queries import TrackerQueries

_log = structlog.get_logger(__name__)

LOOK_EVERY = 5.0
"""Seconds after which a follower looks without a wake-up."""
LATE = 10.0
"""Seconds for which the log of an attempt that was cancelled may still come."""
_PIECE = 32 * 1024


@attrs.frozen
class Piece:
    """Some lines of a log, and the offset behind them."""

    text: str
    end: int


@attrs.frozen
class End:
    """The attempt is over, and all of its log was given."""

    attempt: AttemptView


class AttemptLogs:
    """Reads logs. `applied` wakes the readers that follow one."""

    def __init__(self, transcripts: TextStreams, blobs: Blobs, queries: TrackerQueries) -> None:
        self._transcripts = transcripts
        self._blobs = blobs
        self._queries = queries
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def applied(self, commits: Sequence[Commit]) -> None:
        """These commits can be read now."""
        for commit in commits if self._waiting else ():
            for event in self._waiting.get(commit.subject, ()):
                event.set()

    async def attempt(self, task_id: str, number: int) -> AttemptView:
        """An attempt. Raises NotFound."""
        found = next((one for one in await self._queries.attempts(task_id) or () if one.number == number), None)
        if found is None:
            raise NotFound(f"{task_id} has no attempt {number}")
        return found

    async def text(self, task_id: str, number: int) -> str:
        """Return the log so far. Raises NotFound, Unavailable."""
        attempt = await self.attempt(task_id, number)
        if attempt.log is not None:
            pieces = list(stored_pieces(await self._blobs.get(attempt.log.digest), attempt.log, 0))
        else:
            pieces = list(live_pieces(await self._transcripts.read(name_of(task_id, number)), 0))
            if not pieces and attempt.ended_at is not None and not _may_come(attempt):
                raise NotFound(f"no log of attempt {number} at {task_id} is kept")
        return "".join(piece.text for piece in pieces)

    async def follow(self, task_id: str, number: int, after: int) -> AsyncGenerator[Piece | End, None]:
        """Return the log behind an offset as it grows, and its end.

        Raises NotFound if the attempt does not exist, also if the task is removed during the stream.
        """
        name, place, sequence = name_of(task_id, number), after, 0
        wake = asyncio.Event()
        with self._woken(task_id, wake):
            async with self._transcripts.heard(name, wake.set):
                while True:
                    wake.clear()
                    attempt = await self.attempt(task_id, number)
                    try:
                        if attempt.log is not None:
                            for piece in stored_pieces(await self._blobs.get(attempt.log.digest), attempt.log, place):
                                yield piece
                            yield End(attempt)
                            return
                        chunks = await self._transcripts.read(name, after=sequence)
                    except BlobMissing:
                        yield End(attempt)
                        return
                    except EventLogError as error:
                        _log.info("a log cannot be read for now", task=task_id, attempt=number, reason=str(error))
                    else:
                        for piece in live_pieces(chunks, place):
                            place = piece.end
                            yield piece
                        sequence = chunks[-1].sequence if chunks else sequence
                        if attempt.ended_at is not None and not _may_come(attempt):
                            yield End(attempt)
                            return
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_EVERY):
                            await wake.wait()

    @contextmanager
    def _woken(self, task_id: str, event: asyncio.Event) -> Iterator[None]:
        subject = f"gctd.task.{task_id}"
        self._waiting[subject].add(event)
        try:
            yield
        finally:
            self._waiting[subject].discard(event)
            if not self._waiting[subject]:
                del self._waiting[subject]


def live_pieces(chunks: Sequence[TextChunk], place: int) -> Iterator[Piece]:
    """Return the pieces of chunks behind a place. Repeated chunks are given once, and a gap between two is marked."""
    for chunk in chunks:
        end = chunk.offset + len(chunk.data)
        if end <= place:
            continue
        if chunk.offset > place:
            yield Piece(left_out(chunk.offset - place), chunk.offset)
            place = chunk.offset
        yield Piece(chunk.data[place - chunk.offset :].decode(errors="replace"), end)
        place = end


def stored_pieces(body: bytes, log: AttemptLog, place: int) -> Iterator[Piece]:
    """Return the pieces of a stored log behind a place."""
    yield from _split(body[: log.cut_at], place, 0)
    resumed = log.cut_at + log.cut
    if log.cut and place < resumed:
        yield Piece(left_out(resumed - max(place, log.cut_at)), resumed)
    yield from _split(body[log.cut_at :], place, resumed)


def _split(body: bytes, place: int, offset: int) -> Iterator[Piece]:
    """The lines of a part of a log that begins at an offset, behind a place."""
    start = max(0, place - offset)
    while start < len(body):
        end = min(start + _PIECE, len(body))
        end = body.rfind(b"\n", start, end) + 1 or len(body)
        yield Piece(body[start:end].decode(errors="replace"), offset + end)
        start = end


def _may_come(attempt: AttemptView) -> bool:
    """Whether the worker of an attempt that was cancelled may yet store its log."""
    if attempt.ended_at is None or attempt.outcome != "cancelled":
        return False
    return (datetime.now(UTC) - datetime.fromisoformat(attempt.ended_at)).total_seconds() < LATE
