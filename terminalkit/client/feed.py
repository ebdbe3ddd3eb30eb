"""The event stream from the side of a client: frames in order, each once, over any number of connections.

Frames are parsed by the HTML Living Standard (section 9.2.6, "Interpreting an event stream"). After a cut the client asks for the
frames after the last complete one (`Last-Event-ID`), and drops repeated frames.
"""

from __future__ import annotations

import asyncio
import codecs
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Self

import attrs

from terminalkit.client.errors import ClientError, TimedOut, Unavailable

LARGEST_FRAME = 16 * 1024 * 1024
"""Characters that one frame may have; more is not an event stream of this service."""

RESET = "reset"
"""The event of a server that cannot resume: the client has to reload the states."""

_HEARTBEAT = "heartbeat"

FIRST_WAIT = 0.5
LONGEST_WAIT = 10.0

_MOST_EVENTS = 10**6
_POSITION = re.compile(r"(?:(?P<epoch>[^-]*)-)?(?P<sequence>[0-9]{1,19})(?:\.(?P<index>[0-9]{1,6}))?")


@attrs.frozen(order=True)
class Position:
    """A place in the log: the sequence of a commit, and the index of an event in it."""

    sequence: int
    index: int = 0

    @classmethod
    def after(cls, sequence: int) -> Self:
        """The place behind all events of a commit."""
        return cls(sequence, _MOST_EVENTS)


@attrs.frozen
class ReceivedFrame:
    """An event: its name, its data as text, and the id that it bore itself (None if it bore none)."""

    event: str
    data: str
    id: str | None = None

    @property
    def position(self) -> Position | None:
        """Its place in the log, by its id; None if that names no place."""
        _, position = _place(self.id)
        return position


def _place(id_: str | None) -> tuple[str | None, Position | None]:
    """The log and the place in it that an id names; None if it does not name them."""
    match = None if id_ is None else _POSITION.fullmatch(id_)
    return (None, None) if match is None else (match["epoch"], Position(int(match["sequence"]), int(match["index"] or 0)))


@attrs.frozen
class Opened:
    """The connection is open, and the server has begun to send.

    `resumed`: it continues at the end of the last one. If not, frames may be missing.
    """

    resumed: bool


@attrs.frozen
class StreamLost:
    """A connection ended or did not come about; the next try follows in `wait` seconds."""

    error: ClientError
    wait: float


Signal = ReceivedFrame | Opened | StreamLost
Connect = Callable[[str | None], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Opens a stream behind an event id (None: from now on) and gives its bytes; raises ClientError."""


class FrameParser:
    """Bytes of one connection in, complete frames out.

    `last_id` is what to resume from, `retry` the seconds that the server asks to wait before that (None: it does not say).
    """

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[ReceivedFrame]:
        """The frames that these bytes complete. Raises ClientError if a frame is larger than LARGEST_FRAME."""
        return [frame for line in self._lines(chunk) if (frame := self._take(line)) is not None]

    def _lines(self, chunk: bytes) -> Iterator[str]:
        text = self._decoder.decode(chunk)
        if not text:
            return
        if self._after_cr and text[0] == "\n":
            text = text[1:]
        self._after_cr = text.endswith("\r")
        *lines, self._rest = (self._rest + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        yield from lines
        self._check_size()

    def _take(self, line: str) -> ReceivedFrame | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
                self._size += len(value)
                self._check_size()
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry = int(value) / 1000
            case _:  # a comment, or a field of another version
                pass
        return None

    def _check_size(self) -> None:
        if self._size + len(self._rest) > LARGEST_FRAME:
            raise ClientError("the event stream has a frame without an end")

    def _dispatch(self) -> ReceivedFrame | None:
        if self._id is not None:
            self.last_id = self._id or None  # an empty id takes the last one back
        frame = ReceivedFrame(self._event or "message", "\n".join(self._data), self._id) if self._data else None
        self._event, self._data, self._size, self._id = "", [], 0, None
        return frame


class _Delivered:
    """Which frames were given to the consumer: positions only rise, within one incarnation of the stream."""

    def __init__(self) -> None:
        self._epoch: str | None = None
        self._last = Position(-1)

    def first_time(self, id_: str | None) -> bool:
        """Whether a frame of this id is new; one without a position always is."""
        epoch, position = _place(id_)
        if position is None:
            return True
        if epoch == self._epoch and position <= self._last:
            return False
        self._epoch, self._last = epoch, position
        return True


async def follow(connect: Connect, *, after: str | None = None, first_wait: float = FIRST_WAIT) -> AsyncGenerator[Signal, None]:
    """Yield the frames of the stream after `after` (None: from now on), and the changes of the connection, without an end.

    Frames with an id are given once and in order. The client reconnects after `first_wait` seconds (or the wait that the server
    asks for) up to LONGEST_WAIT, with jitter. A caller that wants to give up does so at a Lost. Raises ClientError if the server
    refuses for a reason that waiting does not remove.
    """
    last_id, delivered, failures, retry = after, _Delivered(), 0, first_wait
    while True:
        parser = FrameParser(last_id)
        error: ClientError = Unavailable("the server ended the event stream")
        try:
            async with connect(last_id) as chunks:
                # The greeting has the position of the stream: with it, a cut while the consumer reads states loses no frame.
                greeting = parser.feed(await anext(chunks, b""))
                yield Opened(resumed=last_id is not None)
                async for frames in _frames(greeting, parser, chunks):
                    for frame in frames:
                        if frame.event == RESET:
                            delivered = _Delivered()
                        if frame.event != _HEARTBEAT and delivered.first_time(frame.id):
                            failures = 0
                            yield frame
        except (Unavailable, TimedOut) as lost:
            error = lost
        last_id, retry = parser.last_id, retry if parser.retry is None else parser.retry
        wait = _wait(error, retry, failures)
        failures += 1
        yield StreamLost(error, wait)
        await asyncio.sleep(wait)


async def _frames(
    greeting: Sequence[ReceivedFrame], parser: FrameParser, chunks: AsyncIterator[bytes]
) -> AsyncGenerator[Sequence[ReceivedFrame], None]:
    yield greeting
    async for chunk in chunks:
        yield parser.feed(chunk)


def _wait(error: ClientError, first: float, failures: int) -> float:
    asked = error.retry_after if isinstance(error, Unavailable) else None
    longest = min(first * 2.0 ** min(failures, 16), LONGEST_WAIT) if asked is None else min(asked, LONGEST_WAIT)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - keeps clients from coming back all at once, no secret
