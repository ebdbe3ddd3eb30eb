"""`pantry migrate` while another process has the database."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from projections.stores.sqlite.files import DatabaseLock
from tests.support.pantry.system import MIGRATIONS

pytestmark = pytest.mark.real


async def test_a_second_migration_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    database = tmp_path / "pantry.db"
    held = DatabaseLock.take(database, patience=0)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pantry", "migrate", "up", "--database-url", f"sqlite:{database}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            said = (await process.stderr.readline()).decode()
        assert said == f"the database is in use by process {os.getpid()}: waiting for it, for at most 30 s\n"
    finally:
        held.release()
        async with asyncio.timeout(60):
            output, rest = await process.communicate()
    assert (process.returncode, rest) == (0, b"")
    assert output.decode().count("applied") == len(MIGRATIONS)
