"""No folder has more entries than a reader takes in at once, except lists of like things."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pytest

from tests.support import ROOT

MOST = 16
LISTS = ("*/migrations", "*/ledger_migrations", "tests/support/log/golden/*")
"""Folders whose files are all of one kind, and are found by their numbers or names."""


def crowded(files: Iterable[str]) -> Mapping[str, int]:
    """The folders below the root with too many entries, without hidden ones."""
    entries = defaultdict[PurePosixPath, set[str]](set)
    for path in map(PurePosixPath, files):
        for place in (path, *path.parents[:-2]):
            if not place.name.startswith("."):
                entries[place.parent].add(place.name)
    del entries[PurePosixPath()]  # tools decide on files at the root
    return {
        str(folder): len(names)
        for folder, names in entries.items()
        if len(names) > MOST and not any(folder.match(pattern) for pattern in LISTS)
    }


@pytest.mark.real
def test_no_folder_is_crowded() -> None:
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(listed) > 1000
    assert crowded(name for name in listed if (ROOT / name).exists()) == {}


def test_a_crowded_folder_is_named_with_the_number_of_its_entries() -> None:
    many = [f"tests/gctd/{number}.py" for number in range(MOST)]
    assert crowded(["setup.cfg", *many, "tests/gctd/.hidden"]) == {}
    assert crowded(["setup.cfg", *many, "tests/gctd/up/places.py"]) == {"tests/gctd": 17}
    assert crowded(["setup.cfg", *(name.replace("gctd", "migrations") for name in [*many, "tests/gctd/16.py"])]) == {}
