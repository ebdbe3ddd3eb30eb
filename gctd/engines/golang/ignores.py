"""Comments that take a function out of the report: `//go-crap:ignore` and `//gocyclo:ignore`.

They count on a separate line in the doc comment: the group of comments that ends on the line directly above `func`, as
go/parser finds it (physical lines, independent of `//line` directives).
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from tree_sitter import Node

_MARKS = (b"//go-crap:ignore", b"//gocyclo:ignore")


def ignored_functions(children: Iterable[Node], source: bytes) -> frozenset[int]:
    """Return the start bytes of the declarations to leave out. `children` are the children of the tree's root, in order."""
    if not any(mark in source for mark in _MARKS):
        return frozenset()
    found = set()
    group = _Group()
    for node in children:
        first, last = node.start_point.row + 1, node.end_point.row + 1
        if node.type == "comment":
            group = group.with_comment(first, last, source[node.start_byte : node.end_byte].strip() in _MARKS)
        elif node.is_named or node.type == ";":
            if group.marked and group.last + 1 == first:
                found.add(node.start_byte)
            group = _Group(code=last)
    return frozenset(found)


@attrs.frozen
class _Group:
    """The comments since the last piece of code, which ends on line `code`.

    `last` is the line on which the group ends, `marked` whether a directive is in it. Comments that begin on the last line of
    code belong to the code. Comments that begin on the last line of such a comment do as well.
    """

    code: int = 0
    last: int = -1
    marked: bool = False

    def with_comment(self, first: int, last: int, marks: bool) -> _Group:  # noqa: FBT001
        if first == self.code:
            return _Group(code=last)
        if first <= self.last + 1:
            return attrs.evolve(self, last=last, marked=self.marked or marks)
        return _Group(self.code, last, marks)
