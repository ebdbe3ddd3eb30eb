"""Build constraints: whether Go builds a file on a platform, by its name, its `//go:build` line and its use of cgo.

Source of the rules: `go help buildconstraint`, and the behaviour of go/build.
"""

from __future__ import annotations

import codecs
import functools
import posixpath
import re
from collections.abc import Callable, Sequence

import attrs

_OS = frozenset(
    {
        *("aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd"),
        *("openbsd", "plan9", "solaris", "wasip1", "windows", "zos"),
    }
)
_ARCHITECTURES = frozenset(
    {
        *("386", "amd64", "amd64p32", "arm", "armbe", "arm64", "arm64be", "loong64", "mips", "mipsle", "mips64", "mips64le"),
        *("mips64p32", "mips64p32le", "ppc", "ppc64", "ppc64le", "riscv", "riscv64", "s390", "s390x", "sparc", "sparc64", "wasm"),
    }
)
_UNIX = _OS - frozenset({"js", "nacl", "plan9", "wasip1", "windows", "zos"})
_IMPLIED = {"android": "linux", "illumos": "solaris", "ios": "darwin"}

_TOKEN = re.compile(r"\s*(\|\||&&|!|\(|\)|[\w.]+)")
_BUILD = re.compile(rb"[ \t]*//go:build[ \t]+([^\r\n]*)")
_PLUS_BUILD = re.compile(rb"[ \t]*//[ \t]*\+build(?:[ \t]+([^\r\n]*))?")
_COMMENT = re.compile(rb"[ \t\r\n]*(?:(//)[^\n]*(?:\n|\Z)|/\*.*?\*/)", re.DOTALL)


@attrs.frozen(kw_only=True)
class Platform:
    """The target of a build: operating system and architecture in Go's names, whether cgo is on, and the tags that hold.

    `tags` has the requested tags, the tags of the toolchain (`goexperiment.…`) and the tags of the releases (`go1.N`).
    """

    goos: str
    goarch: str
    cgo: bool
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.goos}/{self.goarch}"

    def holds(self, tag: str) -> bool:
        """Whether a tag of a constraint is true."""
        if tag == "cgo":
            return self.cgo
        if tag == "unix":
            return self.goos in _UNIX
        return tag in (self.goos, self.goarch, "gc", _IMPLIED.get(self.goos)) or tag in self.tags


def constraint_in(header: bytes) -> str:
    """Return the build constraint in the text before a file's package clause; empty if it has none.

    Lines of the older form `// +build` count if no `//go:build` is present, and a blank line follows them.
    """
    if b"build" not in header:
        return ""
    header = header.removeprefix(codecs.BOM_UTF8)
    found: list[bytes] = []
    older: list[tuple[int, bytes]] = []
    at = 0
    while comment := _COMMENT.match(header, at):
        if comment[1]:
            text = header[comment.start() : comment.end()].lstrip(b"\r\n")
            if build := _BUILD.match(text.lstrip()):
                found.append(build[1])
            elif plus := _PLUS_BUILD.match(text.lstrip()):
                older.append((comment.start(1), plus[1] or b""))
        at = comment.end()
    if found:
        return found[0].decode("utf-8", "replace").partition("//")[0].strip()
    blank = max(header.rfind(b"\n\n"), header.rfind(b"\n\r\n"))
    lines = [_of_plus_build(line.decode("utf-8", "replace")) for place, line in older if place < blank]
    return " && ".join(f"({line})" if len(lines) > 1 else line for line in lines)


def _of_plus_build(line: str) -> str:
    options = [" && ".join(part for part in option.split(",")) for option in line.split()]
    return " || ".join(f"({option})" if "&&" in option and len(options) > 1 else option for option in options) or "false.false"


def not_built(path: str, constraint: str, platform: Platform, *, cgo: bool = False) -> str:
    """Return the reason why Go does not build a file on a platform; empty if it does. `cgo`: the file imports "C"."""
    name = posixpath.basename(path)
    if name.startswith(("_", ".")):
        return "files whose name begins with _ or . are never built"
    if not _name_fits(name, platform):
        return f"the name {name} is not for {platform}"
    if constraint and not _fits(constraint, platform):
        return f"//go:build {constraint} is not for {platform}"
    return 'it imports "C", and cgo is off' if cgo and not platform.cgo else ""


def _name_fits(name: str, platform: Platform) -> bool:
    parts = name.partition(".")[0].split("_")[1:]
    if parts and parts[-1] == "test":
        parts.pop()
    if len(parts) >= 2 and parts[-2] in _OS and parts[-1] in _ARCHITECTURES:
        return platform.holds(parts[-2]) and platform.holds(parts[-1])
    return not parts or parts[-1] not in _OS | _ARCHITECTURES or platform.holds(parts[-1])


@functools.lru_cache(maxsize=4096)
def _fits(constraint: str, platform: Platform) -> bool:
    """Whether an expression is true; Go builds no file with one that it cannot read."""
    try:
        return _Expression(constraint, platform).value()
    except ValueError:
        return False


class _Expression:
    """`||` binds least, then `&&`, then `!`."""

    def __init__(self, text: str, platform: Platform) -> None:
        self._tokens: list[str] = []
        self._platform = platform
        at = 0
        while at < len(text.rstrip()):
            token = _TOKEN.match(text, at)
            if token is None:
                raise ValueError(text)
            self._tokens.append(token[1])
            at = token.end()
        self._tokens.reverse()

    def value(self) -> bool:
        result = self._or()
        if self._tokens:
            raise ValueError(self._tokens[-1])
        return result

    def _or(self) -> bool:
        return self._all_of("||", self._and, any)

    def _and(self) -> bool:
        return self._all_of("&&", self._not, all)

    def _all_of(self, operator: str, operand: Callable[[], bool], combined: Callable[[Sequence[bool]], bool]) -> bool:
        values = [operand()]
        while self._tokens and self._tokens[-1] == operator:
            self._tokens.pop()
            values.append(operand())
        return combined(values)

    def _not(self) -> bool:
        negated = False
        while self._tokens and self._tokens[-1] == "!":
            self._tokens.pop()
            negated = not negated
        if not self._tokens:
            raise ValueError("ends early")
        word = self._tokens.pop()
        if word == "(":
            value = self._or()
            if not self._tokens or self._tokens.pop() != ")":
                raise ValueError("a parenthesis is not closed")
        elif word in (")", "||", "&&"):
            raise ValueError(word)
        else:
            value = self._platform.holds(word)
        return value != negated
