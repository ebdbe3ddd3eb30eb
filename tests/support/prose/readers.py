"""Readers of prose in files other than Markdown and Python: pages, descriptions of GraphQL, and YAML.

Each yields texts with the line of their begin, counted from 1.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser

import tree_sitter_typescript
import yaml
from graphql import StringValueNode, Visitor, parse, visit
from tree_sitter import Language, Node, Parser, Query, QueryCursor

_TSX = Language(tree_sitter_typescript.language_tsx())
_PARTS = Query(_TSX, "(comment) @comment [(jsx_text) (string) (template_string)] @sentence")
_YAML_COMMENT = re.compile(r"(?:^|\s)#+ (.*)$", re.MULTILINE)

Part = tuple[int, str, bool]
"""A line, a text, and whether it is prose only if it has the form of a sentence."""


def typescript(source: str) -> Iterator[Part]:
    """Comments, texts of elements, and strings. Comments of whole lines that are adjacent are one text."""
    captures = QueryCursor(_PARTS).captures(Parser(_TSX).parse(source.encode()).root_node)
    yield from _comments(captures.get("comment", []))
    for node in captures.get("sentence", []):
        yield node.start_point.row + 1, _string(node), True


def html(source: str) -> Iterator[Part]:
    """Texts between tags."""
    reader = _Html()
    reader.feed(source)
    yield from reader.found


def graphql(source: str) -> Iterator[Part]:
    """Descriptions and comments."""
    reader = _Descriptions()
    visit(parse(source), reader)
    yield from reader.found
    for found in _YAML_COMMENT.finditer(source):
        yield source.count("\n", 0, found.start(1)) + 1, found[1], False


def yaml_(source: str) -> Iterator[Part]:
    """Values and comments."""
    for event in yaml.parse(io.StringIO(source), Loader=yaml.SafeLoader):
        if isinstance(event, yaml.ScalarEvent) and event.start_mark is not None:
            yield event.start_mark.line + 1, event.value, True
    for found in _YAML_COMMENT.finditer(source):
        yield source.count("\n", 0, found.start(1)) + 1, found[1], False


READERS: Mapping[str, Callable[[str], Iterator[Part]]] = {
    ".ts": typescript,
    ".tsx": typescript,
    ".js": typescript,
    ".html": html,
    ".graphql": graphql,
    ".yml": yaml_,
    ".yaml": yaml_,
}
"""By suffix."""


def _comments(nodes: list[Node]) -> Iterator[Part]:
    block: list[tuple[int, str]] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        text, line = _text(node), node.start_point.row + 1
        before = node.prev_sibling
        is_whole = text.startswith("//") and (before is None or before.end_point.row < node.start_point.row)
        if block and (not is_whole or line != block[-1][0] + 1):
            yield block[0][0], "\n".join(each for _, each in block), False
            block = []
        if is_whole:
            block.append((line, text.lstrip("/ ")))
        else:
            yield line, text.strip("/* ").replace("*", " ") if text.startswith("/*") else text.lstrip("/ "), False
    if block:
        yield block[0][0], "\n".join(each for _, each in block), False


def _string(node: Node) -> str:
    """The text of a string or an element. The expressions of a template are `x`."""
    if node.type != "template_string":
        return _text(node).strip("\"'")
    return "".join("x" if child.type == "template_substitution" else _text(child) for child in node.children[1:-1])


def _text(node: Node) -> str:
    return "" if node.text is None else node.text.decode()


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Part] = []

    def handle_data(self, data: str) -> None:
        self.found.append((self.getpos()[0], data, True))


class _Descriptions(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Part] = []

    def enter_string_value(self, node: StringValueNode, *_: object) -> None:
        if node.loc is not None:
            self.found.append((node.loc.start_token.line, node.value, False))
