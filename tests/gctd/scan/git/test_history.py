"""Relations of commits: by the objects of git, and an error if they cannot be read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from gctd.scan.errors import GitError
from gctd.scan.git.commands import Git
from gctd.scan.git.history import Histories
from gctd.scan.git.mirrors import MOST_PACKS
from tests.gctd.scan.conftest import url_of
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


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


async def test_a_mirror_of_many_questions_keeps_few_packs_and_files_of_refs(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "repo")
    repo.git("config", "uploadpack.allowFilter", "true")
    commits = [repo.head(), *(repo.commit(f"commit {number}") for number in range(MOST_PACKS + 10))]
    histories, url = Histories(tmp_path / "cache", Git()), url_of(repo.path)
    for parent, commit in pairwise(commits):
        assert await histories.first_parent(url, commit, seconds=60) == parent
    [mirror] = (tmp_path / "cache" / "history").glob("*.git")
    assert len(list(mirror.glob("objects/pack/*.pack"))) < MOST_PACKS
    assert len([ref for ref in mirror.glob("refs/gctd/*") if ref.is_file()]) < MOST_PACKS
    for parent, commit in pairwise(commits):
        assert await histories.first_parent(url, commit, seconds=60) == parent
    assert await histories.merge_base(url, "main", commits[5], seconds=60) == commits[5]


async def test_files_of_a_killed_git_go_with_the_next_fetch(tmp_path: Path) -> None:
    repo = gorepo.make(tmp_path / "repo")
    first, histories, url = repo.head(), Histories(tmp_path / "cache", Git()), url_of(repo.path)
    assert await histories.first_parent(url, first, seconds=60) is None
    [mirror] = (tmp_path / "cache" / "history").glob("*.git")
    left = [mirror / "objects/pack/tmp_pack_1a2b3c", mirror / "objects/pack/.tmp-123-pack-4d5e.pack", mirror / "packed-refs.lock"]
    for file in left:
        file.write_bytes(b"half")
    assert await histories.first_parent(url, repo.commit("second"), seconds=60) == first
    assert [file for file in left if file.exists()] == []
