"""Syntax trees of Go source, by tree-sitter-go, within bounds that hostile source cannot pass."""

from __future__ import annotations

import re

import tree_sitter_go
from tree_sitter import Language, Node, Parser, Tree

GO = Language(tree_sitter_go.language())

# The grammar takes the first argument of `new` and `make` for a type. Since Go 1.26 `new` takes values too, and either
# name can be redeclared. If a file cannot be parsed, these calls are read as calls of an ordinary function.
_CALL_WITH_VALUE = re.compile(rb"\b(?:new|make)(?=\s*\((?!\s*(?:\[|<-\s*chan\b|map\b|chan\b|func\b|struct\b|interface\b)))")
# Since Go 1.27 methods have type parameters, which the grammar does not know: they are blotted out.
_GENERIC_METHOD = re.compile(rb"^func\s*\([^()]*\)\s*\w+\s*(?=\[)", re.MULTILINE)
_BRACKET = re.compile(rb"[\[\]]")
_NO_LINE_FEED = re.compile(rb"[^\n]")
_CHUNK = 1 << 16
_BYTE_ORDER_MARK = "\ufeff"


class Unparsable(ValueError):
    """The source is not a Go file, or is nested too deeply. The text names the place."""


def syntax_tree(source: bytes, *, nesting: int) -> Tree:
    """The tree of a source without errors, at most `nesting` levels deep. Raises Unparsable."""
    _check_text(source)
    tree = _parse(source)
    _check_depth(tree.root_node, nesting)
    return tree


def line_of(node: Node) -> int:
    """The physical line (from 1) on which a node begins."""
    return node.start_point.row + 1


def text_of(node: Node, source: bytes) -> str:
    """Return the text of a node. `source` is the original source of the tree, without the parser's replacements."""
    return source[node.start_byte : node.end_byte].decode()


def _check_text(source: bytes) -> None:
    """Raise Unparsable for text that the Go scanner refuses and the grammar accepts."""
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
        rewritten = _without_method_parameters(_CALL_WITH_VALUE.sub(lambda call: call[0].upper(), source))
        if rewritten == source:
            raise
        return _syntax_tree(rewritten)


def _without_method_parameters(source: bytes) -> bytes:
    """Return the source with blanks for the type parameters of its methods. Every other byte keeps its place."""
    methods = [method.end() for method in _GENERIC_METHOD.finditer(source)]
    if not methods:
        return source
    closing = _closing_brackets(source)
    rewritten = bytearray(source)
    done = 0
    for start in methods:
        if start < done or start not in closing:
            continue
        done = closing[start] + 1
        rewritten[start:done] = _NO_LINE_FEED.sub(b" ", source[start:done])
    return bytes(rewritten)


def _closing_brackets(source: bytes) -> dict[int, int]:
    """Return the place of the closing `]` for the place of each closed `[`."""
    opened: list[int] = []
    closing = {}
    for bracket in _BRACKET.finditer(source):
        if bracket[0] == b"[":
            opened.append(bracket.start())
        elif opened:
            closing[opened.pop()] = bracket.start()
    return closing


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
        raise Unparsable(f"line {_errorline_of(tree.root_node)}: syntax error")
    return tree


def _errorline_of(root: Node) -> int:
    """Return the first line (from 1) with an error in the tree; if the whole file is an error, the last readable line."""
    node: Node | None = root
    found = root
    while node is not None:
        found = node
        node = next((child for child in found.children if child.has_error), None)
    return line_of(found) if found is not root or not root.children else line_of(root.children[-1])


def _check_depth(root: Node, limit: int) -> None:
    """Queries are wrong beyond 65,535 levels and slow long before; only nodes with many descendants can be that deep."""
    layer = [root] if root.descendant_count > limit else []
    depth = 0
    while layer:
        depth += 1
        if depth > limit:
            raise Unparsable(f"line {line_of(layer[0])}: nested more than {limit} deep")
        layer = [child for node in layer for child in node.children if child.descendant_count > limit - depth]


def _line_at(source: bytes, offset: int) -> int:
    return source.count(b"\n", 0, offset) + 1
