"""The text of an attempt's log: harmless to look at, without credentials, bounded."""

from __future__ import annotations

import re
from collections import deque

from gctd.broker.attempt_logs import HEAD, TAIL
from gctd.scan.git.messages import conceal

LONGEST_LINE = 8 * 1024
"""Characters that a line may have."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def readable(line: str) -> str:
    """A line as it may be shown anywhere: without colours and credentials, control characters as escapes, not too long."""
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]} [{len(line) - LONGEST_LINE} characters more]"
    line = line.rstrip("\r\n")
    if not line.isprintable():
        line = _UNSAFE.sub(lambda found: _escape(found[0]), _COLOURS.sub("", line))
    return conceal(line)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class BoundedText:
    """The beginning and the end of a text, in whole lines. Offsets are bytes of the whole text."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most_head = head
        self._most_tail = tail
        self._head = bytearray()
        self._full = False
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0
        """Bytes that the whole text has."""

    def append(self, line: bytes) -> None:
        """Add a line, with its line break."""
        self.size += len(line)
        self._full = self._full or len(self._head) + len(line) > self._most_head
        if not self._full:
            self._head += line
            return
        self._tail.append(line)
        self._tail_size += len(line)
        while self._tail_size > self._most_tail:
            self._tail_size -= len(self._tail.popleft())

    @property
    def whole(self) -> bool:
        """Whether all of it is in the beginning."""
        return not self._full

    @property
    def cut_at(self) -> int:
        """Offset of the end of the beginning."""
        return len(self._head)

    @property
    def cut(self) -> int:
        """Bytes that are left out behind the beginning."""
        return self.size - len(self._head) - self._tail_size

    def kept(self) -> bytes:
        """Beginning and end."""
        return bytes(self._head) + b"".join(self._tail)

    def beginning(self, offset: int, most: int) -> bytes:
        """Return at most `most` bytes of the beginning from an offset on, in whole lines; empty at the end of the beginning."""
        part = bytes(self._head[offset : offset + most])
        return part[: part.rfind(b"\n") + 1]

    def newest(self, offset: int, most: int) -> tuple[int, bytes]:
        """Return the offset of the last lines behind the beginning, and the lines.

        The lines start at or after `offset`, and have at most `most` bytes.
        """
        lines: list[bytes] = []
        start, left = self.size, most
        for line in reversed(self._tail):
            if start - len(line) < offset or len(line) > left:
                break
            start -= len(line)
            left -= len(line)
            lines.append(line)
        return start, b"".join(reversed(lines))
