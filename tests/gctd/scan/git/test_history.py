"""Relations of commits: by the objects of git, and an error if they cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctd.scan.errors import GitError
from gctd.scan.git.commands import Git
from gctd.scan.git.history import Histories
from tests.gctd.scan.conftest import url_of
from tests.support.tracker import go_repo as gorepo


async def test_a_commit_has_the_parent_that_its_object_names(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "repo")
    first, histories, url = repo.head(), Histories(tmp_path / "cache", Git()), url_of(repo.path)
    repo.git("checkout", "--quiet", "-b", "topic")
    topic = repo.commit("parent 1234 is no parent, since it is in the message")
    repo.git("checkout", "--quiet", "main")
    second = repo.commit("second")
    repo.git("merge", "--quiet", "--no-ff", "--message=merge", "topic")
    assert await histories.first_parent(url, first, seconds=60) is None
    assert await histories.first_parent(url, topic, seconds=60) == first
    assert await histories.first_parent(url, repo.head(), seconds=60) == second
    assert await histories.merge_base(url, "main", topic, seconds=60) == topic


async def test_a_damaged_mirror_is_replaced_and_changes_no_answer(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "repo")
    first = repo.head()
    second, histories, url = repo.commit("second"), Histories(tmp_path / "cache", Git()), url_of(repo.path)
    mirror = tmp_path / "cache" / "history"
    for damaged in (b"damaged", b""):
        assert await histories.first_parent(url, second, seconds=60) == first
        for file in mirror.rglob("objects/**/*"):
            if file.is_file():
                file.chmod(0o600)
                file.write_bytes(damaged)
        assert await histories.first_parent(url, second, seconds=60) == first
        assert await histories.merge_base(url, "main", first, seconds=60) == first


async def test_a_commit_that_cannot_be_read_is_an_error_and_not_one_without_a_parent(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "repo")
    second, histories, url = repo.commit("second"), Histories(tmp_path / "cache", Git()), url_of(repo.path)
    for file in repo.path.rglob("objects/**/*"):
        if file.is_file():
            file.chmod(0o600)
            file.write_bytes(b"damaged")
    with pytest.raises(GitError):
        await histories.first_parent(url, second, seconds=60)
