"""Frames of an event stream, encoded once, and the ring that keeps the last of them for clients that come back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import attrs

from eventlog.commit import Position

LAST_INDEX = 999_999
"""The index of no event: a position with it is after every event of its commit."""
WRITE = 64 * 1024
"""Bytes that are put together for one write."""


def _wire(frame: Frame) -> bytes:
    if "\n" in frame.event or "\r" in frame.event:
        raise ValueError("the name of an event has no line breaks")
    data = b"\ndata: ".join(frame.data.splitlines() or [b""])
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(frame.position).encode(), frame.event.encode(), data)


def _data(value: bytes | str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"the data of an event is text or bytes, not {type(value).__name__}; httpkit.encode makes JSON of a value")


@attrs.frozen
class Frame:
    """One event for clients: its position in the log, its name, its data (text or its UTF-8 bytes, usually JSON).

    `wire` are its bytes in the event stream format (WHATWG HTML, section 9.2), made once for all clients. Raises ValueError for
    a name with line breaks, TypeError for data that is neither text nor bytes.
    """

    position: Position
    event: str
    data: bytes = attrs.field(converter=_data)
    wire: bytes = attrs.field(init=False, repr=False, eq=False, default=attrs.Factory(_wire, takes_self=True))

    @property
    def size(self) -> int:
        """The bytes that it occupies."""
        return len(self.data) + len(self.wire)


@attrs.frozen
class FrameChunk:
    """Bytes for one write, how many frames are in them, and the numbers that they begin and end at (`next` is not in them)."""

    wire: bytes
    frames: int
    first: int
    next: int


class Ring:
    """The last frames of a stream, numbered from 0 as they come, bounded in count and in bytes.

    It has every frame with a position above `floor`; older ones have to be read from the log.
    """

    def __init__(self, floor: Position, *, max_frames: int, max_bytes: int) -> None:
        self.floor = floor
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: list[Frame] = []
        self._positions: list[Position] = []
        self.first = 0
        """The number of the oldest frame that is kept."""
        self._bytes = 0
        self._chunks: dict[tuple[int, frozenset[str] | None], FrameChunk] = {}

    @property
    def end(self) -> int:
        """The number that the next frame will have."""
        return self.first + len(self._frames)

    @property
    def last(self) -> Position:
        """The position of the newest frame, or the floor if there is none."""
        return self._positions[-1] if self._positions else self.floor

    def extend(self, frames: Sequence[Frame]) -> None:
        """Add frames, in order; those at or before the last position are known already and left out."""
        self._chunks.clear()
        for frame in frames:
            if frame.position > self.last:
                self._frames.append(frame)
                self._positions.append(frame.position)
                self._bytes += frame.size
        self._trim()

    def skip_to(self, floor: Position) -> None:
        """Restart after a position. Clients before it have lost the ring, even clients at its end."""
        self._chunks.clear()
        self.first = self.end + 1
        self._frames.clear()
        self._positions.clear()
        self._bytes = 0
        self.floor = max(self.floor, floor)

    def _trim(self) -> None:
        excess = max(0, len(self._frames) - self._max_frames)
        freed = sum(frame.size for frame in self._frames[:excess])
        while excess < len(self._frames) and self._bytes - freed > self._max_bytes:
            freed += self._frames[excess].size
            excess += 1
        if excess:
            self.floor = self._positions[excess - 1]
            self.first += excess
            self._bytes -= freed
            del self._frames[:excess], self._positions[:excess]

    def number_after(self, position: Position) -> int | None:
        """The number of the first frame after a position; None where frames after it may have left the ring."""
        if position < self.floor:
            return None
        return self.first + bisect_right(self._positions, position)

    def since(self, number: int) -> Sequence[Frame]:
        """The frames from a number on."""
        return self._frames[number - self.first :]

    def chunk(self, number: int, only: frozenset[str] | None) -> FrameChunk:
        """The frames from a number on, as many as fit one write, of the events in `only` (None: all).

        Clients at the same place share the bytes.
        """
        found = self._chunks.get((number, only))
        if found is None:
            found = self._chunks[number, only] = self._join(number, only)
        return found

    def _join(self, number: int, only: frozenset[str] | None) -> FrameChunk:
        parts: list[bytes] = []
        size, start = 0, number - self.first
        following = number
        for index in range(start, len(self._frames)):
            frame = self._frames[index]
            if parts and size + len(frame.wire) > WRITE:
                break
            following += 1
            if only is None or frame.event in only:
                parts.append(frame.wire)
                size += len(frame.wire)
        return FrameChunk(parts[0] if len(parts) == 1 else b"".join(parts), len(parts), number, following)
