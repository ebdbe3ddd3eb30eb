"""The demonstration's repository has a commit on `main` and one on a branch, for the gate."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gctd.cli.up.demo import BRANCH, make_repository

pytestmark = pytest.mark.real


def _git(directory: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def test_the_repository_has_a_branch_and_the_same_commits_everywhere(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_repository(tmp_path / name)
    one, two = (_git(tmp_path / name, "for-each-ref", "--format=%(refname:short) %(objectname)") for name in ("one", "two"))
    assert one == two
    assert [line.split()[0] for line in one.splitlines()] == ["main", BRANCH]
    assert _git(tmp_path / "one", "status", "--porcelain", "--branch") == "## main"
    changed = _git(tmp_path / "one", "diff", "--name-only", "main", BRANCH).splitlines()
    assert changed == ["orders/check_test.go", "orders/shipping/shipping.go"]


def test_a_repository_that_is_there_keeps_the_changes_of_its_user(tmp_path: Path) -> None:
    make_repository(tmp_path / "shop")
    _git(tmp_path / "shop", "pack-refs", "--all")
    (tmp_path / "shop" / "notes.txt").touch()
    make_repository(tmp_path / "shop")
    assert (tmp_path / "shop" / "notes.txt").exists()
