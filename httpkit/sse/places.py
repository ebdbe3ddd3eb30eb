"""Places in an event stream: the last event of a client that resumes, its id on the wire, and the frames after it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing

import attrs
from aiohttp import web

from eventlog.commit import Position
from httpkit.messages.encoding import encode
from httpkit.messages.fields import member, message
from httpkit.sse.frames import LAST_INDEX, WRITE, Frame, Ring

Replay = Callable[[Position, int], AsyncGenerator[Sequence[Frame], None]]
"""`replay(after, until)`: the frames with a position above `after` in commits up to sequence `until`, in order, in lists."""


class CannotResume(Exception):
    """The client's last event is not in this log."""


@message
class StreamReset:
    """The events after the client's last one are not in this log: the client has to load its state once more."""

    reason: str = member()


@message
class StreamHeartbeat:
    """The stream lives."""


OF_EVERY_STREAM: Mapping[str, type] = {"reset": StreamReset, "heartbeat": StreamHeartbeat}
"""The events that a stream of a hub sends besides the events of its service. A heartbeat has no id."""


@attrs.frozen
class ReplayChunk:
    """Frames that follow each other, and the position up to which all that were asked for have been given."""

    position: Position
    frames: Sequence[Frame] = ()


def asked_place(request: web.Request) -> Position | None:
    """The position after which the client resumes. The header comes first: a browser repeats the first query for ever."""
    text = request.headers.get("Last-Event-ID") or request.query.get("last_event_id")
    return place_of(text) if text else None


def place_of(text: str) -> Position:
    """The place that an id names. Raises CannotResume."""
    try:
        return Position.parse(text)
    except ValueError:
        raise CannotResume("Last-Event-ID is not an id of this stream") from None


def told_place(ring: Ring) -> bytes:
    """An id without an event: a client that is cut off before its first event resumes from here all the same."""
    return b"id: %b\n\n" % str(ring.last).encode()


def told_reset(error: Exception, ring: Ring) -> bytes:
    """A frame with the reason of a reset, and the id of the next place."""
    return b"event: reset\ndata: %b\n\n%b" % (encode(StreamReset(reason=str(error))), told_place(ring))


async def replayed(replay: Replay, after: Position, until: int) -> ReplayChunk:
    """The next frames after a place, from the log."""
    async with aclosing(replay(after, until)) as lists:
        async for frames in lists:
            return ReplayChunk(frames[-1].position, frames)
    return ReplayChunk(Position(until, LAST_INDEX))


def writes(frames: Sequence[Frame], after: Position, only: frozenset[str] | None) -> Iterator[list[bytes]]:
    """The bytes of the frames above a position, in lists of about one write."""
    part: list[bytes] = []
    size = 0
    for frame in frames:
        if frame.position <= after or (only is not None and frame.event not in only):
            continue
        part.append(frame.wire)
        size += len(frame.wire)
        if size >= WRITE:
            yield part
            part, size = [], 0
    if part:
        yield part
