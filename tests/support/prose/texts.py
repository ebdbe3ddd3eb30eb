"""The prose of a file: paragraphs of Markdown, docstrings, comments, and the sentences that a program prints.

Code spans, link targets and HTML are replaced by placeholders of the same length, so that line numbers stay exact.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from markdown_it import MarkdownIt

_CODE = re.compile(r"(`+)(?:.(?!\1))*.?\1", re.DOTALL)
_TARGET = re.compile(r"\]\([^)]*\)")
_HTML = re.compile(r"<[^>]+>")
_ADDRESS = re.compile(r"\b[a-z]+://\S+")
_PROGRAM_TEXT = re.compile(r"[A-Za-z']+ [a-z']+ [a-z']+ [a-z']+")
_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|FROM|WHERE|PRAGMA|SET)\b")
_TYPESCRIPT = re.compile(
    r"^[ \t]*//(?P<line>[^\n]*)$|(?<=\s)// (?P<end>[^\n]*)$|/\*\*?(?P<block>.*?)\*/", re.MULTILINE | re.DOTALL
)


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


def texts_of(file: Path) -> Sequence[Text]:
    """Return all prose of a file, in the order of its lines. The suffix selects the reader."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        found = _markdown(file, source)
    elif file.suffix in (".ts", ".tsx"):
        found = _typescript(file, source)
    else:
        found = iter([*_literals(file, source), *_comments(file, source)])
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


def _literals(file: Path, source: str) -> Iterator[Text]:
    """Yield docstrings (of attributes too), and sentences of at least four words other than SQL: help, errors, log lines.

    In tests the latter are left out: they are data there.
    """
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - docstrings
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        is_sentence = _PROGRAM_TEXT.search(text) and not _SQL.search(text) and "tests" not in file.parts
        if id(node) in docstrings or is_sentence:
            yield Text(file, node.lineno, text)


def _comments(file: Path, source: str) -> Iterator[Text]:
    """Yield comments. Comments on adjacent lines and in the same column are one text."""
    block: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            if block and block[-1][:2] != (row - 1, column):
                yield Text(file, block[0][0], "\n".join(line for _, _, line in block))
                block = []
            block.append((row, column, token.string.lstrip("#! ")))
    if block:
        yield Text(file, block[0][0], "\n".join(line for _, _, line in block))


def _typescript(file: Path, source: str) -> Iterator[Text]:
    """Comments; whole lines of them that are adjacent are one text."""
    block: list[str] = []
    first = 0
    for found in _TYPESCRIPT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        if block and (found["line"] is None or line != first + len(block)):
            yield Text(file, first, "\n".join(block))
            block = []
        if found["line"] is None:
            yield Text(file, line, found["end"] or found["block"].replace("*", " "))
        else:
            first = first if block else line
            block.append(found["line"].strip())
    if block:
        yield Text(file, first, "\n".join(block))
