"""Selection and reading of the Go files of a module.

The directory holds code that is not trusted, and tests have run in it: no symbolic link is followed, and only regular files
are opened.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path

from gctd.engines.engine import EngineFailed, EngineInput, EngineLimits
from gctd.engines.golang.files import read_regular
from gctd.engines.golang.modfile import module_file
from gctd.engines.report import ReportWarning, WarningKind


class Warnings:
    """Collects the warnings of one analysis, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[ReportWarning] = []
        self._more = 0

    def add(self, kind: WarningKind, path: str, reason: str) -> None:
        if len(self._kept) < self._limit:
            self._kept.append(ReportWarning(kind=kind, path=printable(path), reason=printable(reason)))
        else:
            self._more += 1

    def all(self) -> tuple[ReportWarning, ...]:
        """Return the warnings in their order, and the number of further ones."""
        last = (ReportWarning(kind="more", path="", reason=f"{self._more} more warnings"),) if self._more else ()
        return (*self._kept, *last)


class Budget:
    """Ends a walk that meets more directories or Go files than the limits allow."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._directories = 0
        self._files = 0

    def directory(self) -> None:
        """Counts a directory. Raises EngineFailed."""
        self._directories += 1
        if self._directories > self._limits.directories:
            raise EngineFailed(f"the module has more than {self._limits.directories} directories")

    def file(self) -> None:
        """Counts a Go file. Raises EngineFailed."""
        self._files += 1
        if self._files > self._limits.files:
            raise EngineFailed(f"the module has more than {self._limits.files} Go files")


def printable(text: str) -> str:
    """A file name as text that can be written as UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def is_skipped_directory(name: str) -> bool:
    """Directories that neither go-crap nor this engine looks into."""
    return name.startswith((".", "_")) or name in {"vendor", "testdata"}


def is_selected_file(name: str, *, include_tests: bool) -> bool:
    """Report whether a file is a Go file. Test files count only with `include_tests`."""
    return name.endswith(".go") and (include_tests or not name.endswith("_test.go"))


def select_files(given: EngineInput, warnings: Warnings) -> Iterator[str]:
    """The module's Go files, relative to its directory: of each directory first its files, then its directories, sorted.

    Other modules inside, directories that go.mod ignores, and symbolic links are left out with a warning. Raises EngineFailed.
    """
    go_mod = module_file(given.module_dir)
    nested = {posixpath.normpath(path) for path in given.nested}
    budget = Budget(given.limits)
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        budget.directory()
        entries = _entries(given.module_dir, directory, warnings)
        if directory and (directory in nested or _has_module_file(entries)):
            warnings.add("nested-module", directory, "a separate module, not counted here (go-crap counts it in both)")
            continue
        directories = []
        prefix = f"{directory}/" if directory else ""
        for entry in entries:
            path = prefix + entry.name
            if entry.is_symlink():
                _warn_of_link(entry, path, warnings, include_tests=given.options.include_tests)
            elif entry.is_dir(follow_symlinks=False):
                if go_mod.ignores(path):
                    warnings.add("ignored", path, "go.mod ignores the directory")
                elif not is_skipped_directory(entry.name):
                    directories.append(path)
            elif is_selected_file(entry.name, include_tests=given.options.include_tests):
                budget.file()
                yield path
        waiting.extend(reversed(directories))


def _entries(root: Path, directory: str, warnings: Warnings) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(root / directory) as found:
            return sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        if not directory:
            raise EngineFailed(f"the module's directory cannot be read: {error.strerror}") from error
        warnings.add("unreadable", directory, error.strerror or "cannot be read")
        return ()


def _has_module_file(entries: Sequence[os.DirEntry[str]]) -> bool:
    return any(entry.name == "go.mod" and not entry.is_dir(follow_symlinks=False) for entry in entries)


def _warn_of_link(entry: os.DirEntry[str], path: str, warnings: Warnings, *, include_tests: bool) -> None:
    if is_selected_file(entry.name, include_tests=include_tests):
        warnings.add("link", path, "a symbolic link, not followed")
    elif not is_skipped_directory(entry.name) and Path(entry.path).is_dir():
        warnings.add("link", path, "a symbolic link to a directory, not followed (go-crap follows it)")


class Unreadable(ValueError):
    """A file is not a regular file, or too large. `kind` is the kind of the warning, the text its reason."""

    def __init__(self, kind: WarningKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def read_source(file: str | Path, most: int) -> bytes:
    """Return the bytes of a file. Raises Unreadable, also if it has more than `most` bytes."""
    try:
        source = read_regular(file, most + 1)
    except OSError as error:
        raise Unreadable("unreadable", error.strerror or "cannot be read") from error
    if len(source) > most:
        raise Unreadable("too-large", f"more than {most} bytes")
    return source
