"""The prose of a file: paragraphs of Markdown, docstrings, comments, and the sentences that a program or a page shows.

Code spans, link targets and HTML are replaced by placeholders of the same length, so that line numbers stay exact.
"""

from __future__ import annotations

import ast
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import attrs
from markdown_it import MarkdownIt

from tests.support.prose.readers import READERS

_CODE = re.compile(r"(`+)(?:.(?!\1))*.?\1", re.DOTALL)
_TARGET = re.compile(r"\]\([^)]*\)")
_HTML = re.compile(r"<[^>]+>")
_ADDRESS = re.compile(r"\b[a-z]+://\S+")
_PROGRAM_TEXT = re.compile(r"[A-Za-z']+ [a-z']+ [a-z']+ [a-z']+")
_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|FROM|WHERE|PRAGMA|SET)\b")


@attrs.frozen
class Text:
    """One paragraph of prose. `line` is the number of its first line, counted from 1.

    `lines` are the lines of a paragraph of Markdown as they are in the file; of anything else there are none.
    """

    file: Path
    line: int
    text: str
    is_heading: bool = False
    lines: Sequence[str] = ()

    @property
    def last_line(self) -> int:
        """The number of its last line."""
        return self.line + self.text.count("\n")


@cache
def texts_of(file: Path) -> Sequence[Text]:
    """Return all prose of a file, in the order of its lines. The suffix selects the reader."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        found = _markdown(file, source)
    elif file.suffix in READERS:
        parts = READERS[file.suffix](source)
        found = (Text(file, line, text) for line, text, is_program in parts if not is_program or _is_sentence(file, text))
    else:
        found = _python(file, source)
    return sorted((attrs.evolve(text, text=_plain(text.text)) for text in found), key=lambda text: text.line)


def _plain(text: str) -> str:
    for pattern in (_CODE, _TARGET, _HTML, _ADDRESS):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), text)
    return text


def _markdown(file: Path, source: str) -> Iterator[Text]:
    """Paragraphs, headings, list items and cells of tables. Blocks of code and of HTML are left out."""
    lines = source.splitlines()
    line, kind = 0, ""
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        if token.map:
            line = token.map[0] + 1
        if token.nesting:
            kind = token.type
        elif token.type == "inline" and token.content:
            raw = lines[token.map[0] : token.map[1]] if token.map and kind == "paragraph_open" else ()
            yield Text(file, line, token.content, kind == "heading_open", raw)


def _is_sentence(file: Path, text: str) -> bool:
    """Whether a string is a text that a program or a page shows: at least four words other than SQL.

    In tests strings are data.
    """
    return bool(_PROGRAM_TEXT.search(text)) and not _SQL.search(text) and "tests" not in file.parts


def _python(file: Path, source: str) -> Iterator[Text]:
    """Yield docstrings (also of attributes), sentences (help, errors, log lines), and comments."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    strings = [node for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant)]
    parts = {id(part) for node in strings if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - docstrings
    for node in strings:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if id(node) in docstrings or _is_sentence(file, text):
            yield Text(file, node.lineno, text)
    yield from _comments(file, source, strings)


def _comments(file: Path, source: str, strings: Sequence[ast.expr]) -> Iterator[Text]:
    """Yield comments, which begin with `#` outside of strings. Comments on adjacent lines in the same column are one text."""
    inside: dict[int, list[tuple[int, float]]] = defaultdict(list)
    """The columns of strings, by line."""
    for node in strings:
        last = node.end_lineno or node.lineno
        for row in range(node.lineno, last + 1):
            begin = node.col_offset if row == node.lineno else 0
            inside[row].append((begin, (node.end_col_offset or 0) if row == last else math.inf))
    block: list[tuple[int, int, str]] = []
    for row, line in enumerate(source.split("\n"), 1):
        column = next((at for at in _columns(line) if not any(a <= at < b for a, b in inside[row])), None)
        if column is None:
            continue
        if block and block[-1][:2] != (row - 1, column):
            yield Text(file, block[0][0], "\n".join(text for _, _, text in block))
            block = []
        block.append((row, column, line.encode()[column:].decode().lstrip("#! ")))
    if block:
        yield Text(file, block[0][0], "\n".join(text for _, _, text in block))


def _columns(line: str) -> Iterator[int]:
    """The places of `#` in a line, in bytes as `ast` counts them."""
    return (found.start() for found in re.finditer(b"#", line.encode())) if "#" in line else iter(())
