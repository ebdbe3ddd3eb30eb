"""The files that go-crap 0.5.1 reads, with its faults: links are followed, nested modules counted, directory names are patterns.

One difference protects the host from a repository: a link to a directory above it, or out of the checkout, is not followed.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from gctd.engines.engine import EngineInput
from gctd.engines.selection import Budget, Warnings, is_selected_file, is_skipped_directory

_META = re.compile(r"[*?\[\\]")


@attrs.frozen
class _Class:
    """The characters that one place of a pattern matches: the characters in the ranges, or with `negated` all others."""

    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    def takes(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated


_ANY = _Class(negated=True)
_STAR = None


class BadPattern(ValueError):
    """A directory name is not a valid pattern."""


def select_like_gocrap(given: EngineInput, warnings: Warnings) -> Iterator[str]:
    """The files that go-crap reads, relative to the module's directory, in its order. Raises EngineFailed."""
    return _SyntaxWalk(given, warnings).files()


def is_seen_by_gocrap(path: str) -> bool:
    """Whether go-crap reads a file (relative to the module): it takes the names of the directories for patterns."""
    try:
        return all(matches(name, name) for name in posixpath.dirname(path).split("/") if _META.search(name))
    except BadPattern:
        return False


class _SyntaxWalk:
    def __init__(self, given: EngineInput, warnings: Warnings) -> None:
        self._root = given.module_dir
        self._repository = given.repository.resolve()
        self._tests = given.options.include_tests
        self._warnings = warnings
        self._budget = Budget(given.limits)

    def files(self) -> Iterator[str]:
        waiting: list[tuple[str, tuple[str, ...]]] = [("", (str(self._root.resolve()),))]
        while waiting:
            directory, above = waiting.pop()
            self._budget.directory()
            names = list(self._glob(directory))
            for path in names:
                if is_selected_file(posixpath.basename(path), include_tests=self._tests) and self._may_read(path):
                    self._budget.file()
                    yield path
            inner = (path for path in names if not is_skipped_directory(posixpath.basename(path)))
            waiting.extend(reversed([(path, (*above, real)) for path in inner if (real := self._enter(path, above))]))

    def _glob(self, directory: str) -> Iterator[str]:
        """The paths that match `directory/*`, where the names in `directory` are patterns from the first that can be one."""
        try:
            found = self._expand(directory.split("/") if directory else [])
        except BadPattern:
            return
        for base in found:
            for name in self._names(base):
                yield posixpath.join(base, name)

    def _expand(self, parts: Sequence[str]) -> list[str]:
        plain = next((index for index, part in enumerate(parts) if _META.search(part)), len(parts))
        found = ["/".join(parts[:plain])]
        for part in parts[plain:]:
            found = [posixpath.join(base, name) for base in found for name in self._names(base) if matches(part, name)]
        return found

    def _names(self, directory: str) -> list[str]:
        try:
            return sorted((entry.name for entry in (self._root / directory).iterdir()), key=os.fsencode)
        except OSError:
            return []

    def _may_read(self, path: str) -> bool:
        file = self._root / path
        if not file.is_symlink() or self._inside(file) is not None:
            return True
        self._warnings.add("link", path, "a symbolic link that leaves the checkout or leads nowhere, not followed")
        return False

    def _enter(self, path: str, above: Sequence[str]) -> str | None:
        directory = self._root / path
        if not directory.is_dir():
            return None
        if not directory.is_symlink():
            return posixpath.join(above[-1], directory.name)
        real = self._inside(directory)
        if real is None:
            self._warnings.add("link", path, "a symbolic link that leaves the checkout, not followed")
            return None
        if str(real) in above:
            self._warnings.add("link", path, "a symbolic link to a directory above it, not followed")
            return None
        return str(real)

    def _inside(self, path: Path) -> Path | None:
        """Return the target of a path; None if it is outside of the checkout, or missing."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return None
        return real if real.is_relative_to(self._repository) else None


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern of Go's path/filepath.Match, as far as one name goes. Raises BadPattern."""
    tokens = list(_tokens(pattern))
    at = used = resume = 0
    star = -1
    while at < len(name):
        token = tokens[used] if used < len(tokens) else None
        if used < len(tokens) and token is _STAR:
            star, resume = used, at
            used += 1
        elif token is not None and token.takes(name[at]):
            used, at = used + 1, at + 1
        elif star >= 0:
            resume += 1
            used, at = star + 1, resume
        else:
            return False
    return all(token is _STAR for token in tokens[used:])


def _tokens(pattern: str) -> Iterator[_Class | None]:
    characters = iter(pattern)
    for character in characters:
        match character:
            case "*":
                yield _STAR
            case "?":
                yield _ANY
            case "[":
                yield _class(characters)
            case "\\":
                literal = _next(characters)
                yield _Class(((literal, literal),))
            case _:
                yield _Class(((character, character),))


def _class(characters: Iterator[str]) -> _Class:
    """What follows a `[`, up to its `]`."""
    character = _next(characters)
    negated = character == "^"
    if negated:
        character = _next(characters)
    ranges: list[tuple[str, str]] = []
    while character != "]" or not ranges:
        low = high = _member(character, characters)
        character = _next(characters)
        if character == "-":
            high = _member(_next(characters), characters)
            character = _next(characters)
        ranges.append((low, high))
    return _Class(tuple(ranges), negated)


def _member(character: str, characters: Iterator[str]) -> str:
    if character in "-]":
        raise BadPattern
    return _next(characters) if character == "\\" else character


def _next(characters: Iterator[str]) -> str:
    for character in characters:
        return character
    raise BadPattern
