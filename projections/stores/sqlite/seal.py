"""The digest of a database file that was closed in order: a single flipped bit in it is found when it is opened again.

SQLite does not notice a flipped bit in a value. The digest is in `<file>.sha256` only while no process writes to the file. After
a crash it is missing, and only damage that SQLite itself notices is found (and all of it by `projections verify`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from eventlog.support.files import write_private

_SUFFIX = ".sha256"


def seal(file: Path) -> None:
    """Note the digest of a file that is closed, without a write-ahead log. Raises OSError."""
    write_private(_beside(file), f"{_digest(file)}\n")


def is_broken(file: Path) -> bool:
    """Whether a file is not what it was when it was sealed. Raises OSError."""
    try:
        noted = _beside(file).read_text().strip()
    except FileNotFoundError:
        return False
    return file.exists() and _digest(file) != noted


def unseal(file: Path) -> None:
    """It is about to be written to."""
    _beside(file).unlink(missing_ok=True)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _beside(file: Path) -> Path:
    return file.with_name(file.name + _SUFFIX)
