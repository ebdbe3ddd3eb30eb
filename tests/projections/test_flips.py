"""Random single-bit flips and truncations of a small store are noticed, or have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flips.streams import flips
from tests.support.flips.tables import postgres_flips, sqlite_flips

pytestmark = [pytest.mark.real, pytest.mark.long]

TRIALS = 25


async def test_changes_of_the_blocks_of_a_stream(tmp_path: Path, seed: int) -> None:
    """Also if the server reads the blocks again after kill -9: an absent or older aggregate is refused."""
    outcomes = await flips(tmp_path, TRIALS, seed)
    assert outcomes.total() == TRIALS


async def test_changes_of_the_file_of_sqlite(tmp_path: Path, seed: int) -> None:
    """One bit of the file, or its end, while no process has it open."""
    outcomes = await sqlite_flips(tmp_path, TRIALS, seed)
    assert outcomes.total() == TRIALS


async def test_changes_of_the_files_of_postgres(tmp_path: Path, seed: int) -> None:
    outcomes = await postgres_flips(tmp_path, TRIALS, seed)
    assert outcomes.total() == TRIALS
