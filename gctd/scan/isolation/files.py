"""Files that untrusted code may have written, reached from an open directory only: no symbolic link is followed on any component.

A path is resolved again each time that it is used, and a test can exchange a directory for a link in between. A descriptor that
was opened before the tests began cannot be exchanged. Every walk is iterative: a test can nest directories deeper than Python
can recurse.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

import attrs

from gctd.scan.errors import UnsafeFile

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_ENTRIES = 20_000_000


class Directory:
    """An open directory. Names are relative to it and stay below it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> Directory:
        """Open a trusted directory: links on the way to it are followed, `path` itself must not be one. Raises OSError."""
        return cls(os.open(path, _DIRECTORY))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)

    def inside(self, name: str) -> Directory:
        """Open a directory below this one, component by component. Raises UnsafeFile, OSError."""
        found = os.dup(self._descriptor)
        for part in _parts(name):
            try:
                deeper = os.open(part, _DIRECTORY, dir_fd=found)
            except NotADirectoryError as error:
                raise UnsafeFile(f"{name}: {part} is a symbolic link or not a directory") from error
            finally:
                os.close(found)
            found = deeper
        return Directory(found)

    def create(self, name: str) -> OwnFile:
        """Create a file here, which must not exist, and keep it open. Raises OSError."""
        return OwnFile(os.open(_one(name), _NEW, 0o600, dir_fd=self._descriptor))

    def read(self, name: str, most: int) -> bytes:
        """The content of a regular file here, at most `most` bytes. Raises UnsafeFile, OSError."""
        try:
            descriptor = os.open(_one(name), _FILE, dir_fd=self._descriptor)
        except OSError as error:
            raise UnsafeFile(f"{name} cannot be read: {error.strerror}") from error
        with OwnFile(descriptor) as file:
            return file.read(most)

    def remove(self, name: str) -> None:
        """Remove what is here under this name, if anything: a file, a link itself, a directory with all that is in it."""
        try:
            os.unlink(_one(name), dir_fd=self._descriptor)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):
            with Directory(os.open(name, _DIRECTORY, dir_fd=self._descriptor)) as full:
                full._empty()
            os.rmdir(name, dir_fd=self._descriptor)

    def disk_usage(self) -> int:
        """Return the bytes of all files below on the disk. Raises UnsafeFile if there are too many, OSError."""
        total = entries = 0
        with _Walk(self._descriptor) as walk:
            while True:
                names = []
                for entry in walk.entries():
                    entries += 1
                    if entries > _MOST_ENTRIES:
                        raise UnsafeFile(f"there are more than {_MOST_ENTRIES} files")
                    if entry.is_dir(follow_symlinks=False):
                        names.append(entry.name)
                        continue
                    try:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                    except FileNotFoundError:  # Go removes files during the walk
                        continue
                if not walk.next(names):
                    return total

    def set_times(self, nanoseconds: int) -> None:
        """Give all files below, and links themselves, this time (since 1970). Raises UnsafeFile, OSError."""
        with _Walk(self._descriptor) as walk:
            for name in walk.files():
                walk.set_time(name, nanoseconds)

    def _empty(self) -> None:
        """Remove everything below."""
        with _Walk(self._descriptor, emptying=True) as walk:
            for name in walk.files():
                walk.unlink(name)


class OwnFile:
    """An open file, independent of its path."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._descriptor)

    def read(self, most: int) -> bytes:
        """Its content, from the beginning. Raises UnsafeFile if it is not a regular file, or larger than `most` bytes."""
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFile("it is not a regular file")
        if found.st_size > most:
            raise UnsafeFile(f"it has {found.st_size} bytes; at most {most} are read")
        content, offset = bytearray(), 0
        while piece := os.pread(self._descriptor, most + 1 - offset, offset):
            content += piece
            offset += len(piece)
            if offset > most:
                raise UnsafeFile(f"it has more than {most} bytes")
        return bytes(content)

    def write(self, content: bytes) -> None:
        """Write all of its content."""
        with os.fdopen(os.dup(self._descriptor), "wb") as file:
            file.write(content)


@attrs.define
class _Level:
    """A directory on the way to the one that is open: which it is, and which of its directories come yet."""

    identity: tuple[int, int]
    pending: list[str]
    entered: str = ""


class _Walk:
    """A walk with one open descriptor: down by name, up by `..`, where the directory must be the one that it came from."""

    def __init__(self, descriptor: int, *, emptying: bool = False) -> None:
        self._current = os.open(".", _DIRECTORY, dir_fd=descriptor)
        self._levels: list[_Level] = []
        self._emptying = emptying

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._current)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Return the entries of the open directory."""
        with os.scandir(self._current) as found:
            yield from found

    def files(self) -> Iterator[str]:
        """Walk through the tree. Yield the name of each file while its directory is open."""
        while True:
            names = []
            for entry in list(self.entries()):  # a file may be removed before the next one is yielded
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                else:
                    yield entry.name
            if not self.next(names):
                return

    def set_time(self, name: str, nanoseconds: int) -> None:
        """Set the times of a file of the directory that is open."""
        os.utime(name, ns=(nanoseconds, nanoseconds), dir_fd=self._current, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        """Remove a file of the directory that is open."""
        os.unlink(name, dir_fd=self._current)

    def next(self, directories: list[str]) -> bool:
        """Go to the next directory, given the directories in the open one; False at the end."""
        self._levels.append(_Level(self._identity(), directories))
        while self._levels:
            level = self._levels[-1]
            if level.pending:
                level.entered = level.pending.pop()
                try:
                    self._go(level.entered)
                except FileNotFoundError:  # removed during the walk
                    continue
                return True
            self._levels.pop()
            if self._levels:
                self._go("..")
                if self._identity() != self._levels[-1].identity:
                    raise UnsafeFile("a directory was moved while it was looked at")
                if self._emptying:
                    os.rmdir(self._levels[-1].entered, dir_fd=self._current)
        return False

    def _go(self, name: str) -> None:
        deeper = os.open(name, _DIRECTORY, dir_fd=self._current)
        os.close(self._current)
        self._current = deeper

    def _identity(self) -> tuple[int, int]:
        found = os.fstat(self._current)
        return found.st_dev, found.st_ino


@contextmanager
def new_file(path: Path) -> Iterator[OwnFile]:
    """Create a file, open during the context. Untrusted code may write to it, or replace it by another."""
    with Directory.open(path.parent) as parent, parent.create(path.name) as file:
        yield file


def _parts(name: str) -> list[str]:
    parts = [part for part in PurePosixPath(name).parts if part != "."]
    if any(part in {"..", "/"} for part in parts):
        raise UnsafeFile(f"{name} is not below the directory")
    return parts


def _one(name: str) -> str:
    if _parts(name) != [name]:
        raise UnsafeFile(f"{name} is not the name of a file")
    return name
