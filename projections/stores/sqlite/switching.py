"""A copy takes the place of the live tables: another file is written to."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from projections.errors import CopyRefused
from projections.rebuild.copies import check_as_far
from projections.stores.sqlite import files, writing
from projections.stores.sqlite.connection import connect_writer, transaction
from projections.stores.sqlite.fence import WriteFence
from projections.stores.sqlite.lock import DatabaseLock


@contextmanager
def adopted(
    file: Path, live: sqlite3.Connection, projections: Collection[str], *, busy_timeout: float
) -> Iterator[tuple[sqlite3.Connection, WriteFence]]:
    """A connection that writes to a copy, with all that is not of these projections as the `live` tables have it.

    The block has the file named as the live one. If it fails, the connection is closed. Raises CopyRefused, StoreInUse.
    """
    if not file.exists():
        raise CopyRefused("there is no copy: `projections rebuild` makes one")
    lock = DatabaseLock.take(files.locked_as(file), patience=0)
    try:
        writer = connect_writer(file, busy_timeout=busy_timeout)
        try:
            before = writing.read_checkpoints(live)
            check_as_far(projections, before, writing.read_checkpoints(writer))
            with transaction(writer):
                fence = WriteFence.take(writer)
                writing.keep_checkpoints(writer, projections, before.values())
                writing.write_scrubs(writer, writing.read_scrubs(live))
            yield writer, fence
        except BaseException:
            writer.close()
            raise
    finally:
        lock.release()
