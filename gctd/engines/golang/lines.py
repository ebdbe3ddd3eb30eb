"""`//line` directives: which file and line the Go tools print for a place in a source file.

Source of the rules: the Go compiler's documentation, "Compiler Directives", and the behaviour of go/token positions.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right

import attrs

MAX_LINE = 1 << 30
_TRAILING_NUMBER = re.compile(rb":([0-9]*)\Z")


class InvalidDirective(ValueError):
    """A `//line` directive that the Go scanner refuses, so that the whole file is refused."""


@attrs.frozen
class SourcePlace:
    """A file and a line in it, as positions are printed. `file` is None for the source file itself."""

    file: str | None
    line: int


@attrs.frozen
class LineDirective:
    """From `offset` (bytes) on, physical line `physical` is line `line` of `file`."""

    offset: int
    physical: int
    file: str
    line: int


@attrs.frozen
class LineMap:
    """The directives of one file, in order of their offsets; empty for nearly every file."""

    directives: tuple[LineDirective, ...] = ()
    _offsets: tuple[int, ...] = attrs.field(init=False, repr=False, eq=False)

    @_offsets.default
    def _offsets_of(self) -> tuple[int, ...]:
        return tuple(directive.offset for directive in self.directives)

    def place(self, offset: int, line: int) -> SourcePlace:
        """Return the place that the tools print for byte `offset` (from 0) on physical `line` (from 1)."""
        index = bisect_right(self._offsets, offset) - 1
        if index < 0:
            return SourcePlace(None, line)
        directive = self.directives[index]
        return SourcePlace(directive.file, directive.line + line - directive.physical)

    def spans(self, start: int, first: int, end: int, last: int) -> tuple[tuple[int, int], ...]:
        """The printed line ranges, first and last included, of the bytes [start, end) on physical lines first to last."""
        inner = [d for d in self.directives if start < d.offset < end]
        begins = [(first, self.place(start, first).line), *((d.physical, d.line) for d in inner)]
        ends = [*(d.physical - 1 for d in inner), last]
        return tuple((printed, printed + max(stop - physical, 0)) for (physical, printed), stop in zip(begins, ends, strict=True))


def may_have_directives(source: bytes) -> bool:
    """Whether looking at the comments is worth it."""
    return b"//line " in source or b"/*line " in source


def directive_of(comment: bytes, end: int, line: int, directory: str, file: str) -> LineDirective | None:
    """Return the directive that a comment holds, or None for any other comment.

    - `comment`: the comment's text. A `//` comment counts only at the beginning of a line.
    - `end`, `line`: the offset and the physical line from which the directive holds.
    - `directory`: the source file's directory. Relative names are joined to it.
    - `file`: the name in force so far.

    Raises InvalidDirective.
    """
    if comment[2:7] != b"line ":
        return None
    text = comment[7:-2] if comment[1:2] == b"*" else comment[7:].removesuffix(b"\r")
    if b":" not in text:
        return None
    name, number = _cut_number(text)
    if number is None:
        raise InvalidDirective(f"invalid line number: {_shown(text)}")
    rest, before = _cut_number(name)
    if before is not None:
        if not 0 < number <= MAX_LINE:
            raise InvalidDirective(f"invalid column number: {_shown(text)}")
        name, number = rest, before
    if not 0 < number <= MAX_LINE:
        raise InvalidDirective(f"invalid line number: {_shown(text)}")
    if name:
        file = posixpath.normpath(posixpath.join(directory, name.decode("utf-8", "surrogateescape")))
    return LineDirective(end, line, file, number)


def _cut_number(text: bytes) -> tuple[bytes, int | None]:
    match = _TRAILING_NUMBER.search(text)
    if match is None or not 0 < len(match[1]) <= 20:
        return text, None
    return text[: match.start()], int(match[1])


def _shown(text: bytes) -> str:
    return text[-40:].decode("utf-8", "replace")
