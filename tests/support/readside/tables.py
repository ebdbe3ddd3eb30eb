"""Changes to the tables of a read model by a person or a fault, without the program."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from projections.store import CopyPart
from projections.stores.databases import path_of
from projections.stores.postgres.connection import DatabaseAddress
from projections.stores.sqlite import files


async def change(url: str, sql: str, part: CopyPart | None = None) -> None:
    """Change one row of the live tables, or of a copy, in a database of either kind."""
    assert await execute(url, sql, part) == 1


async def execute(url: str, sql: str, part: CopyPart | None = None) -> int:
    """Run a statement on the live tables, or on a copy, of a database of either kind; gives how many rows it changed."""
    path = path_of(url)
    if path is not None:
        with closing(sqlite3.connect(file_of(path, part))) as connection, connection:
            return connection.execute(sql).rowcount
    session: Any = await asyncpg.connect(DatabaseAddress(url).dsn)
    try:
        if part is not None:
            live = await session.fetchval("SELECT current_schema()")
            await session.execute("SELECT set_config('search_path', quote_ident($1), false)", f"{live}__{part.value}")
        done = str(await session.execute(sql)).rpartition(" ")[2]
        return int(done) if done.isdigit() else 0
    finally:
        await session.close()


def file_of(path: Path, part: CopyPart | None) -> Path:
    """The file of the live tables, or of a copy."""
    found = files.read(path)
    number = {None: found.live, CopyPart.NEW: found.new, CopyPart.OLD: found.old}[part]
    assert number is not None
    return files.file_of(path, number)
