"""go.mod and go.work files: the few directives that matter for finding projects.

Parsed here, and not by `go mod edit -json`: the grammar is small (https://go.dev/ref/mod#go-mod-file-lexical), and a repository
may have hundreds of such files, each of which would cost a process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import attrs

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r]+)
  | (?P<comment>//.*)
  | (?P<quoted>"(?:[^"\\\n]|\\.)*")
  | (?P<raw>`[^`\n]*`)
  | (?P<mark>=>|[(),])
  | (?P<word>[^\s()",`]+)
    """,
    re.VERBOSE,
)
_BLOCKS = frozenset({"module", "require", "exclude", "replace", "retract", "use", "godebug", "tool", "ignore"})


class SyntaxProblem(ValueError):
    """A file that `go` would not read either; the text names line and reason."""


@attrs.frozen
class Directive:
    """A line of the file: its verb (that of the block it stands in) and the words after it."""

    verb: str
    words: tuple[str, ...]


@attrs.frozen(kw_only=True)
class GoMod:
    """A go.mod: module path, versions (empty where not stated), and the local directories that modules are replaced by."""

    module_path: str
    go_version: str = ""
    toolchain: str = ""
    local_replacements: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class GoWork:
    """A go.work: the directories in use, as written, and local replacements."""

    uses: tuple[str, ...] = ()
    local_replacements: tuple[str, ...] = ()


def parse_go_mod(text: str) -> GoMod:
    """Read a go.mod. Raises SyntaxProblem, also where it names no module."""
    directives = list(_directives(text))
    module_path = _single(directives, "module")
    if not module_path:
        raise SyntaxProblem("no module directive")
    return GoMod(
        module_path=module_path,
        go_version=_single(directives, "go"),
        toolchain=_single(directives, "toolchain"),
        local_replacements=_replacements(directives),
    )


def parse_go_work(text: str) -> GoWork:
    """Read a go.work. Raises SyntaxProblem."""
    directives = list(_directives(text))
    uses = tuple(directive.words[0] for directive in directives if directive.verb == "use" and directive.words)
    return GoWork(uses=uses, local_replacements=_replacements(directives))


def _directives(text: str) -> Iterator[Directive]:
    block: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        words = _words(line, number)
        if not words:
            continue
        if block is not None:
            if words == [")"]:
                block = None
            else:
                yield Directive(block, tuple(words))
        elif words[-1] == "(" and len(words) == 2:
            if words[0] not in _BLOCKS:
                raise SyntaxProblem(f"line {number}: unknown block {words[0]!r}")
            block = words[0]
        else:
            yield Directive(words[0], tuple(word for word in words[1:] if word not in "()"))
    if block is not None:
        raise SyntaxProblem(f"the block {block!r} does not end")


def _words(line: str, number: int) -> list[str]:
    words: list[str] = []
    position = 0
    while position < len(line):
        found = _TOKEN.match(line, position)
        if found is None:
            raise SyntaxProblem(f"line {number}: cannot be read at {line[position : position + 20]!r}")
        position = found.end()
        token = found.group()
        if found.lastgroup == "quoted":
            words.append(_unquoted(token, number))
        elif found.lastgroup == "raw":
            words.append(token[1:-1])
        elif found.lastgroup in {"word", "mark"}:
            words.append(token)
    return words


def _unquoted(token: str, number: int) -> str:
    try:
        text: str = json.loads(token)
    except ValueError:
        raise SyntaxProblem(f"line {number}: {token} is not a string") from None
    return text


def _single(directives: list[Directive], verb: str) -> str:
    found = [directive for directive in directives if directive.verb == verb]
    if len(found) > 1:
        raise SyntaxProblem(f"repeated {verb} directive")
    return found[0].words[0] if found and found[0].words else ""


def _replacements(directives: list[Directive]) -> tuple[str, ...]:
    """The right sides of `replace old => new` that are directories: those begin with `./`, `../` or `/`."""
    found: list[str] = []
    for directive in directives:
        if directive.verb == "replace" and "=>" in directive.words:
            right = directive.words[directive.words.index("=>") + 1 :]
            if right and (right[0].startswith(("./", "../", "/")) or right[0] in {".", ".."}):
                found.append(right[0])
    return tuple(found)
