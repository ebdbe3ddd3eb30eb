"""The tables of a read model behind the program's back: what a person, or a fault, does to them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from projections.copies import Part
from projections.databases import path_of
from projections.postgres.connection import Address
from projections.sqlite import files


async def change(url: str, sql: str, part: Part | None = None) -> None:
    """Change one row of the live tables, or of a copy, in a database of either kind."""
    path = path_of(url)
    if path is not None:
        with closing(sqlite3.connect(file_of(path, part))) as connection, connection:
            assert connection.execute(sql).rowcount == 1
        return
    assert (await execute(url, sql, part)).endswith(" 1")


async def execute(url: str, sql: str, part: Part | None = None) -> str:
    """Run a statement on a Postgres, on its live tables or on a copy; gives what Postgres says was done."""
    session: Any = await asyncpg.connect(Address(url).dsn)
    try:
        if part is not None:
            live = await session.fetchval("SELECT current_schema()")
            await session.execute("SELECT set_config('search_path', quote_ident($1), false)", f"{live}__{part.value}")
        return str(await session.execute(sql))
    finally:
        await session.close()


def file_of(path: Path, part: Part | None) -> Path:
    """The file of the live tables, or of a copy."""
    found = files.read(path)
    number = {None: found.live, Part.NEW: found.new, Part.OLD: found.old}[part]
    assert number is not None
    return files.file_of(path, number)
