"""The files of a database: the live one, the one before, and one that is being made.

`<path>.live` names the live one by number, 0 for `<path>` itself, n for `<path>.<n>`; without it `<path>` is live. It is replaced
whole, so that there is no moment at which none is, or two are. No file of a database is ever renamed: SQLite finds the
write-ahead log by the name (https://www.sqlite.org/howtocorrupt.html, 2.4).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import attrs
import msgspec

from eventlog.support.files import write_private
from projections.errors import StoreDamaged

BESIDE = ("", "-wal", "-shm", "-journal", ".copy.lock")
"""Endings of the files that belong to one of a database."""


@attrs.frozen
class Files:
    """Which file is live, and which one was before it (None: there is none)."""

    live: int = 0
    old: int | None = None

    @property
    def new(self) -> int:
        """The file that is, or would be, made next."""
        return 1 + max(self.live, self.old or 0)


def read(path: Path) -> Files:
    """The files of the database at a path. Raises OSError, StoreDamaged."""
    try:
        text = _named(path).read_bytes()
    except FileNotFoundError:
        return Files()
    try:
        return msgspec.json.decode(text, type=Files)
    except msgspec.DecodeError as error:
        raise StoreDamaged(f"{_named(path)} does not name the live file: {error}. Remove it and {path.name}*") from error


def write(path: Path, files: Files) -> None:
    """Make other files live and old in one step, which a power cut does not split. Raises OSError."""
    write_private(_named(path), msgspec.json.encode(files).decode())


def file_of(path: Path, number: int) -> Path:
    """The file of that number."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def identity(file: Path) -> tuple[int, int] | None:
    """Device and number of a file, which tell it from another one of its name; None if there is none. Raises OSError."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def locked_as(file: Path) -> Path:
    """The lock file of a file that is open as a copy: the lock of `<path>` itself is for the whole database."""
    return file.with_name(f"{file.name}.copy")


def remove(file: Path) -> None:
    """Remove a file of a database and all that belongs to it."""
    for ending in BESIDE:
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)


def quarantine(file: Path) -> Path:
    """Rename a file of a database, which no process has open, and all files that belong to it. Return the new name."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = file.with_name(f"{file.name}.damaged-{moment}")
    for ending in ("-wal", "-shm", ""):  # a log left behind would be taken for the next one's
        with suppress(FileNotFoundError):
            file.with_name(f"{file.name}{ending}").rename(aside.with_name(f"{aside.name}{ending}"))
    return aside


def remove_others(path: Path, keep: Collection[int]) -> None:
    """Remove the files of a database except these."""
    for found in tuple(path.parent.iterdir()):
        name, _, number = found.name.rpartition(".")
        if name == path.name and number.isdigit() and int(number) not in keep:
            remove(found)
    if 0 not in keep:
        remove(path)


def _named(path: Path) -> Path:
    return path.with_name(f"{path.name}.live")
