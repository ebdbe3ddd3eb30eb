"""The structure of a function from its text: its branches, and the block that has to run before each block.

A lexer is enough for both, takes linear time, and is safe for source that is not trusted. Complexity counts one for each `if`,
`for`, `case`, `&&` and `||` (see `gctd.engines.golang.complexity`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import attrs

from gctd.engines.functions.blocks import CountedBlock

_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|`[^`]*`?|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*"
    rb"|[0-9][A-Za-z0-9_.]*|&&|\|\||[{}]",
    re.DOTALL,
)
_BRANCHES = frozenset({b"if", b"for", b"case", b"&&", b"||"})
_SCOPES = frozenset({b"{", b"}", b"else", b"case", b"default"})
_Place = tuple[int, int]
_FUNCTION = 0
"""Outside of all scopes, which have numbers from 1."""
MOST_BLOCKS = 2_000
"""Blocks of a function whose scopes are looked at: blocks that lie deep inside of each other take quadratic time."""


@attrs.frozen
class Branch:
    """A place that adds one to the complexity: its line and column (from 1, in bytes), and its token."""

    line: int
    column: int
    token: str


@attrs.frozen
class _Token:
    place: _Place
    end: _Place
    text: bytes


def _tokens(lines: Sequence[bytes], first: int) -> Iterator[_Token]:
    """Yield the tokens of branches and scopes in the lines, of which the first has the number `first`."""
    text = b"\n".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for found in _TOKEN.finditer(text):
        word = found[0]
        if word in _BRANCHES or word in _SCOPES:
            row = bisect_right(starts, found.start()) - 1
            column = found.start() - starts[row] + 1
            yield _Token((first + row, column), (first + row, column + len(word)), word)


def branches_of(lines: Sequence[bytes], first: int) -> list[Branch]:
    """Return the branches in the lines of a function, of which the first has the number `first`."""
    found = (token for token in _tokens(lines, first) if token.text in _BRANCHES)
    return [Branch(*token.place, token.text.decode()) for token in found]


def parents_of(blocks: Sequence[CountedBlock], lines: Sequence[bytes], first: int) -> list[int | None]:
    """Return for each block the index of the block that runs before it whenever it runs, None for the first.

    `blocks` are in order of their start, `lines` are the lines of the function. Without lines, a block has a parent only if it
    begins at the end of that block, else the first block is its parent. The same holds for more than MOST_BLOCKS blocks.
    """
    if len(blocks) > MOST_BLOCKS:
        lines = ()
    ends = {(block.end_line, block.end_col): index for index, block in enumerate(blocks)}
    scopes = _Scopes(_tokens(lines, first))
    latest: dict[int, int] = {}
    """The last block with each innermost scope. A scope lies in the same scopes at all of its places, so its number is enough."""
    parents: list[int | None] = []
    for index, block in enumerate(blocks):
        start = block.start_line, block.start_col
        path = scopes.at(start)
        before = ends.get(start)
        if before is None and scopes.else_of is not None:
            before = ends.get(scopes.else_of)
        if before is None or before >= index:
            around = [latest[scope] for scope in (_FUNCTION, *path) if scope in latest] if lines else []
            before = max(around, default=0 if index else None)
        latest[path[-1] if path else _FUNCTION] = index
        parents.append(before)
    return parents


class _Scopes:
    """The open scopes along the tokens of a function: braces, clauses of `switch` and `select`, branches of `else`."""

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self._next = next(tokens, None)
        self._open: list[list[int]] = []
        self._places: list[_Place] = []
        self._closed: _Place | None = None
        self._else: _Token | None = None
        self._number = 0
        self.else_of: _Place | None = None
        """The start of the body of the `if` whose `else` begins at the place of the last call of `at`."""

    def at(self, place: _Place) -> tuple[int, ...]:
        """Return the scopes that are open at a place, the outermost first. A brace that begins there is open."""
        while self._next is not None and (self._next.place <= place if self._next.text == b"{" else self._next.end <= place):
            self._take(self._next)
            self._next = next(self._tokens, None)
        path = tuple(number for scope in self._open for number in scope)
        begins_else = self._else is not None and self._else.end == place
        self.else_of = self._closed if begins_else else None
        return (*path, self._number) if begins_else else path

    def _take(self, token: _Token) -> None:
        if token.text == b"{":
            # The braces of an `else` are the scope that began with the word.
            number = self._number if self._else is not None else self._new()
            self._open.append([number])
            self._places.append(token.place)
        elif token.text == b"}" and self._open:
            self._open.pop()
            self._closed = self._places.pop()
        elif token.text == b"else":
            self._new()
        elif token.text in (b"case", b"default") and self._open:
            self._open[-1][1:] = [self._new()]
        self._else = token if token.text == b"else" else None

    def _new(self) -> int:
        self._number += 1
        return self._number
