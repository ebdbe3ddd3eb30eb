"""Cyclomatic complexity of the functions of one Go source file, by tree-sitter-go.

The counting rule is gocyclo's and go-crap's: one, and one more for each `if`, `for`, `case` of a switch or select, `&&` and
`||`, function literals included.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import attrs
import tree_sitter_go
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from gctd.engines import lines
from gctd.engines.lines import LineMap
from gctd.engines.receivers import Receiver, receiver_of

GO = Language(tree_sitter_go.language())

# Tokens, not the statements around them: each counted construct has exactly one, and patterns of a single node keep the
# query linear, where `(binary_expression operator: ...)` takes quadratic time on a long chain of operators.
_DECISIONS = Query(GO, '["if" "for" "case" "&&" "||"] @decision')
_COMMENTS = Query(GO, "(comment) @comment")
# The grammar takes the first argument of `new` and `make` for a type. Since Go 1.26 `new` takes values too, and either
# name can be declared anew: where a file cannot be parsed, those calls are read as calls of an ordinary function.
_CALL_WITH_VALUE = re.compile(rb"\b(?:new|make)(?=\s*\((?!\s*(?:\[|<-\s*chan\b|map\b|chan\b|func\b|struct\b|interface\b)))")
_TOP_LEVEL = {
    "package_clause": 0,
    "import_declaration": 1,
    "const_declaration": 2,
    "type_declaration": 2,
    "var_declaration": 2,
    "function_declaration": 2,
    "method_declaration": 2,
}
_EXTRAS = frozenset({"comment", "empty_statement"})
_FUNCTIONS = frozenset({"function_declaration", "method_declaration"})
_CHUNK = 1 << 16
_BYTE_ORDER_MARK = "\ufeff"
_IGNORE = (b"//go-crap:ignore", b"//gocyclo:ignore")


class Unparsable(ValueError):
    """The source is not a Go file, or is nested too deeply; the text says where."""


@attrs.frozen
class Printed:
    """Where the Go tools say that a declaration is, under the file's `//line` directives.

    `file` is None for the source file itself; `first`, `last`, `opens` and `closes` are the lines of `func`, of the end, of `{`
    and of `}`; `spans` the line ranges of the body.
    """

    file: str | None
    first: int
    last: int
    opens: int
    closes: int
    spans: tuple[tuple[int, int], ...]


@attrs.frozen
class Declaration:
    """A function or method declared at the top of a file.

    Lines and columns count from 1, columns in bytes; `end` is the place after the last byte. `opens` and `closes` are the lines
    of the body's braces, 0 where the declaration has no body. `ignored` says that a comment takes it out of the report.
    """

    name: str
    receiver: Receiver | None
    cyclomatic: int
    start: tuple[int, int]
    end: tuple[int, int]
    opens: int
    closes: int
    ignored: bool = False
    printed: Printed | None = None


@attrs.frozen
class SourceFile:
    """What the analysis of one file found: its package clause and its declarations in order."""

    package: str
    declarations: tuple[Declaration, ...]


def analyse_source(path: str, source: bytes, *, nesting: int = 50_000) -> SourceFile:
    """The functions of a Go source file.

    `path` is relative to the module, with forward slashes; it only serves to name the files of `//line` directives.
    `nesting` is the greatest depth of the syntax tree. Raises Unparsable.
    """
    _check_text(source)
    tree = _parse(source)
    _check_depth(tree.root_node, nesting)
    package, functions = _top_level(tree.root_node)
    decisions = sorted(node.start_byte for node in QueryCursor(_DECISIONS).captures(tree.root_node).get("decision", ()))
    line_map = _line_map(path, source, tree) if lines.may_have_directives(source) else LineMap()
    may_ignore = any(mark in source for mark in _IGNORE)
    declarations = tuple(
        _declaration(node, source, decisions, line_map, ignored=may_ignore and _ignored(node, source, line_map))
        for node in functions
    )
    return SourceFile(_text(package, source), declarations)


def _top_level(root: Node) -> tuple[Node, Sequence[Node]]:
    """The package's name and the functions; the grammar lets statements pass here, and declarations in any order."""
    package = None
    functions = []
    reached = 0
    for node in root.named_children:
        kind = node.type
        if kind in _EXTRAS:
            continue
        rank = _TOP_LEVEL.get(kind, -1)
        if rank < reached or (package is None) != (rank == 0):
            raise Unparsable(f"line {_line(node)}: unexpected {kind.replace('_', ' ')}")
        reached = rank
        if package is None:
            package = next(child for child in node.named_children if child.type == "package_identifier")
        elif kind in _FUNCTIONS:
            functions.append(node)
    if package is None:
        raise Unparsable("line 1: expected a package clause")
    return package, functions


def _check_text(source: bytes) -> None:
    """What the Go scanner refuses and the grammar lets pass."""
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        raise Unparsable(f"line {_line_at(source, error.start)}: not UTF-8") from None
    if "\0" in text:
        raise Unparsable(f"line {_line_at(source, source.index(0))}: a NUL character")
    if not text.isascii() and text.find(_BYTE_ORDER_MARK, 1) > 0:
        raise Unparsable("a byte order mark in the middle of the file")


def _parse(source: bytes) -> Tree:
    try:
        return _syntax_tree(source)
    except Unparsable:
        rewritten = _CALL_WITH_VALUE.sub(lambda call: call[0].upper(), source)
        if rewritten == source:
            raise
        return _syntax_tree(rewritten)


def _syntax_tree(source: bytes) -> Tree:
    """Stops at the first syntax error, so that recovering from garbage costs no time."""
    reached = 0

    def failed(offset: int, has_error: bool) -> bool:  # noqa: FBT001 (the parser calls it so)
        nonlocal reached
        reached = offset
        return has_error

    try:
        tree = Parser(GO).parse(lambda offset, _: source[offset : offset + _CHUNK], progress_callback=failed)
    except ValueError:
        raise Unparsable(f"line {_line_at(source, reached)}: syntax error") from None
    if tree.root_node.has_error:
        raise Unparsable(f"line {_error_line(tree.root_node)}: syntax error")
    return tree


def _error_line(root: Node) -> int:
    """The first line (from 1) where the tree has an error; where the whole file is one, the last that could be read."""
    node: Node | None = root
    found = root
    while node is not None:
        found = node
        node = next((child for child in found.children if child.has_error), None)
    return _line(found) if found is not root or not root.children else _line(root.children[-1])


def _check_depth(root: Node, limit: int) -> None:
    """Queries are wrong beyond 65,535 levels and slow long before; only nodes with many descendants can be that deep."""
    layer = [root] if root.descendant_count > limit else []
    depth = 0
    while layer:
        depth += 1
        if depth > limit:
            raise Unparsable(f"line {_line(layer[0])}: nested more than {limit} deep")
        layer = [child for node in layer for child in node.children if child.descendant_count > limit - depth]


def _declaration(node: Node, source: bytes, decisions: Sequence[int], line_map: LineMap, *, ignored: bool) -> Declaration:
    name = node.child_by_field_name("name")
    assert name is not None, "the grammar gives every function a name"
    receiver = node.child_by_field_name("receiver")
    body = node.child_by_field_name("body")
    start, end = node.start_point, node.end_point
    count = bisect_left(decisions, node.end_byte) - bisect_left(decisions, node.start_byte)
    return Declaration(
        name=_text(name, source),
        receiver=None if receiver is None else receiver_of(receiver, source),
        cyclomatic=1 + count,
        start=(start.row + 1, start.column + 1),
        end=(end.row + 1, end.column + 1),
        opens=0 if body is None else body.start_point.row + 1,
        closes=0 if body is None else body.end_point.row + 1,
        ignored=ignored,
        printed=_printed(node, body, line_map) if line_map.directives else None,
    )


def _printed(node: Node, body: Node | None, line_map: LineMap) -> Printed:
    place = line_map.place(node.start_byte, _line(node))
    last = line_map.place(node.end_byte, node.end_point.row + 1).line
    if body is None:
        return Printed(place.file, place.line, last, 0, 0, ())
    closes = body.end_point.row + 1
    return Printed(
        place.file,
        place.line,
        last,
        line_map.place(body.start_byte, _line(body)).line,
        line_map.place(body.end_byte - 1, closes).line,
        line_map.spans(body.start_byte, _line(body), body.end_byte, closes),
    )


def _line_map(path: str, source: bytes, tree: Tree) -> LineMap:
    comments = QueryCursor(_COMMENTS).captures(tree.root_node).get("comment", [])
    return LineMap(tuple(_directives(path, source, sorted(comments, key=lambda node: node.start_byte))))


def _directives(path: str, source: bytes, comments: Sequence[Node]) -> Iterator[lines.Directive]:
    directory, file = posixpath.dirname(path), path
    for node in comments:
        start, end = node.start_byte, node.end_byte
        if source.startswith(b"//", start):
            if node.start_point.column:
                continue
            holds, line = end + 1, node.end_point.row + 2
        else:
            holds, line = end, node.end_point.row + 1
        try:
            found = lines.directive_of(source[start:end], holds, line, directory, file)
        except lines.InvalidDirective as error:
            raise Unparsable(f"line {_line(node)}: {error}") from None
        if found is not None:
            file = found.file
            yield found


def _ignored(node: Node, source: bytes, line_map: LineMap) -> bool:
    """Whether the comment group that ends on the line directly above has an ignore directive on a line of its own."""
    below = line_map.place(node.start_byte, _line(node)).line
    comment = node.prev_sibling
    last_of_group = True
    while comment is not None and comment.type == "comment":
        before = comment.prev_sibling
        distance = below - line_map.place(comment.end_byte - 1, comment.end_point.row + 1).line
        if distance > 1 or (last_of_group and distance != 1):
            return False
        last_of_group = False
        if before is not None and before.end_point.row == comment.start_point.row and before.type != "comment":
            return False
        if source[comment.start_byte : comment.end_byte].strip() in _IGNORE:
            return True
        below = line_map.place(comment.start_byte, _line(comment)).line
        comment = before
    return False


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _line_at(source: bytes, offset: int) -> int:
    return source.count(b"\n", 0, offset) + 1


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode()
