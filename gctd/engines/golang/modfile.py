"""go.mod and go.work files: the few directives that matter for finding projects.

Parsed here, and not by `go mod edit -json`: the grammar is small (https://go.dev/ref/mod#go-mod-file-lexical), and a repository
may have hundreds of such files, each of which would cost a process. A directive that is not known here is passed over, so that
the files of a newer Go can be read; whether they mean something is Go's business when the tests run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from gctd.engines.golang.files import read_regular

_LARGEST = 1 << 20
"""Bytes of a go.mod that are read."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r]+)
  | (?P<comment>//.*)
  | (?P<quoted>"(?:[^"\\\n]|\\.)*")
  | (?P<mark>[()\[\]{},])
  | (?P<word>(?:(?!//|/\*)[^\s()\[\]{},])+)
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}


class SyntaxProblem(ValueError):
    """A file that `go` would not read either; the text names line and reason."""


class NoDirectives(SyntaxProblem):
    """A go.mod with nothing in it: it only keeps Go out of a directory."""


@attrs.frozen
class Directive:
    """A line of the file: its verb (for a line of a block, the verb of the block), and the words after it."""

    verb: str
    words: tuple[str, ...]
    line: int


@attrs.frozen(kw_only=True)
class GoMod:
    """A go.mod: module path, versions (empty where not stated), the local directories that modules are replaced by, and `ignore`.

    These paths are of directories in which Go looks for no packages: below the module's root with `./`, else at any depth.
    """

    module_path: str
    go_version: str = ""
    toolchain: str = ""
    local_replacements: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def ignores(self, directory: str) -> bool:
        """Whether Go looks for no packages in a directory, relative to the module. The ones above it have to be asked for too."""
        for path in self.ignored:
            if directory == path.removeprefix("./") or (not path.startswith("./") and directory.endswith(f"/{path}")):
                return True
        return False


@attrs.frozen(kw_only=True)
class GoWork:
    """A go.work: the directories in use, as written, and local replacements."""

    uses: tuple[str, ...] = ()
    local_replacements: tuple[str, ...] = ()


def parse_go_mod(text: str) -> GoMod:
    """Parse a go.mod. Raises SyntaxProblem, for example if it has no module, and NoDirectives."""
    directives = list(_directives(text))
    if not directives:
        raise NoDirectives("it is empty")
    module_path = _single(directives, "module")
    if not module_path:
        raise SyntaxProblem("no module directive")
    return GoMod(
        module_path=module_path,
        go_version=_single(directives, "go"),
        toolchain=_single(directives, "toolchain"),
        local_replacements=_replacements(directives),
        ignored=tuple(_only_word(directive).rstrip("/") for directive in directives if directive.verb == "ignore"),
    )


def module_file(directory: Path) -> GoMod:
    """Return the go.mod of a directory; one without directives if it cannot be read."""
    try:
        return parse_go_mod(read_regular(directory / "go.mod", _LARGEST).decode())
    except (OSError, UnicodeDecodeError, SyntaxProblem):
        return GoMod(module_path="")


def parse_go_work(text: str) -> GoWork:
    """Read a go.work. Raises SyntaxProblem."""
    directives = list(_directives(text))
    used = [_only_word(directive) for directive in directives if directive.verb == "use"]
    return GoWork(uses=tuple(used), local_replacements=_replacements(directives))


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
                yield Directive(block, tuple(words), number)
        elif words[1:] == ["("]:
            block = words[0]
        elif words[1:] != ["(", ")"]:
            yield Directive(words[0], tuple(words[1:]), number)
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
        elif found.lastgroup == "word" and re.search(r"[\"'`]", token):
            raise SyntaxProblem(f"line {number}: a quotation mark in {token!r}")
        elif found.lastgroup in ("word", "mark"):
            words.append(token)
    return words


def _unquoted(token: str, number: int) -> str:
    """The value of an interpreted string (Go specification, String literals)."""

    def character(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[3] or match[4]
        if hexadecimal or match[2]:
            code = int(hexadecimal, 16) if hexadecimal else int(match[2], 8)
            if code < 0x110000 and not 0xD800 <= code < 0xE000:
                return chr(code)
        elif match[5] in _NAMED:
            return _NAMED[match[5]]
        raise SyntaxProblem(f"line {number}: {token} is not a string")

    return _ESCAPE.sub(character, token[1:-1])


def _single(directives: list[Directive], verb: str) -> str:
    found = [directive for directive in directives if directive.verb == verb]
    if len(found) > 1:
        raise SyntaxProblem(f"line {found[1].line}: repeated {verb} directive")
    return _only_word(found[0]) if found else ""


def _only_word(directive: Directive) -> str:
    if len(directive.words) != 1:
        raise SyntaxProblem(f"line {directive.line}: {directive.verb} takes one value")
    return directive.words[0]


def _replacements(directives: list[Directive]) -> tuple[str, ...]:
    """The right sides of `replace old => new` that are directories: those begin with `./`, `../` or `/`."""
    found: list[str] = []
    for directive in directives:
        if directive.verb == "replace" and "=>" in directive.words:
            right = directive.words[directive.words.index("=>") + 1 :]
            if right and (right[0].startswith(("./", "../", "/")) or right[0] in (".", "..")):
                found.append(right[0])
    return tuple(found)
