"""The base of a working copy, by the rules of the gate."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gctd.cli.builds.checking.working_copy import BaseCommit, NotAWorkingCopy, WorkingCopy
from gctd.control.comparing.baselines import Kind

pytestmark = pytest.mark.real


def git(directory: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`main` with two commits; `feature` left it at the first, which has the tag v1, and has one commit."""
    root = tmp_path_factory.mktemp("copy")
    git(root, "init", "--quiet")
    for name, branch in (("one", ""), ("two", ""), ("three", "feature")):
        if branch:
            git(root, "checkout", "--quiet", "-b", branch, "v1")
        (root / f"{name}.txt").write_text(name)
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", name)
        if name == "one":
            git(root, "tag", "v1")
    return root


def test_a_branch_means_the_commit_at_which_this_one_left_it(copy: Path) -> None:
    found = WorkingCopy.at(copy)
    first = git(copy, "rev-parse", "v1")
    assert (found.changed, found.commit) == (False, git(copy, "rev-parse", "HEAD"))
    assert found.base("main") == BaseCommit(commit=first, kind=Kind.MERGE_BASE)
    assert found.base("v1") == BaseCommit(commit=first, kind=Kind.TAG)
    assert found.base(first[:12]) == BaseCommit(commit=first, kind=Kind.COMMIT)
    for wrong in ("nothing", "-h", "--all"):
        with pytest.raises(NotAWorkingCopy, match="is no branch, tag or commit of this clone"):
            found.base(wrong)


def test_a_commit_is_not_compared_with_itself_and_a_changed_tree_is_compared_with_its_commit(copy: Path, tmp_path: Path) -> None:
    found = WorkingCopy.at(copy)
    assert found.base("HEAD") == BaseCommit(commit=git(copy, "rev-parse", "HEAD^"), kind=Kind.PARENT)
    (copy / "new.txt").write_text("x")
    try:
        changed = WorkingCopy.at(copy)
        assert changed.base("HEAD") == BaseCommit(commit=found.commit, kind=Kind.COMMIT)
        changed.put(git(copy, "rev-parse", "main"), tmp_path / "base")
        assert {file.name for file in (tmp_path / "base").glob("*.txt")} == {"one.txt", "two.txt"}
        assert git(copy, "status", "--porcelain") == "?? new.txt", "the tree of the user is untouched"
    finally:
        (copy / "new.txt").unlink()


def test_head_and_revisions_are_of_the_working_copy_and_not_of_its_remote(copy: Path, tmp_path: Path) -> None:
    """A clone has the default branch of its remote as `origin/HEAD`."""
    git(copy, "branch", "--force", "a@b", "main")
    git(tmp_path, "clone", "--quiet", copy.as_uri(), "clone")
    clone = tmp_path / "clone"
    first = git(clone, "rev-parse", "v1")
    git(clone, "checkout", "--quiet", "-b", "own", "v1")
    for name in ("four", "five"):
        (clone / f"{name}.txt").write_text(name)
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "--message", name)
    fourth, fifth = git(clone, "rev-parse", "own^"), git(clone, "rev-parse", "own")
    assert WorkingCopy.at(clone).base("HEAD") == BaseCommit(commit=fourth, kind=Kind.PARENT)
    (clone / "new.txt").write_text("x")
    changed = WorkingCopy.at(clone)
    expected = {"HEAD": fifth, "@": fifth, "HEAD~1": fourth, "HEAD^": fourth, "@{0}": fifth, "HEAD^{/four}": fourth}
    assert {name: changed.base(name) for name in expected} == {
        name: BaseCommit(commit=commit, kind=Kind.COMMIT) for name, commit in expected.items()
    }
    branches = ("main", "origin/main", "origin/HEAD", "a@b")
    assert [changed.base(name) for name in branches] == [BaseCommit(commit=first, kind=Kind.MERGE_BASE)] * len(branches)


def test_a_folder_outside_of_git_and_a_shallow_clone_have_no_base(copy: Path, tmp_path: Path) -> None:
    alone = WorkingCopy.at(tmp_path)
    assert (alone.root, alone.commit) == (tmp_path, "")
    with pytest.raises(NotAWorkingCopy, match="use --baseline FILE, or --absolute"):
        alone.base("main")
    git(tmp_path, "clone", "--quiet", "--depth=1", copy.as_uri(), str(tmp_path / "shallow"))
    with pytest.raises(NotAWorkingCopy, match="has no parent in this clone: fetch more of the history"):
        WorkingCopy.at(tmp_path / "shallow").base("HEAD")


def test_a_refusal_of_git_is_told_and_is_no_folder_outside_of_git(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container of a build often runs as another user than the owner of the checkout."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(NotAWorkingCopy, match=r"dubious ownership .*git config --global --add safe\.directory"):
        WorkingCopy.at(copy)


def test_a_tree_whose_changes_are_unknown_does_not_count_as_unchanged(copy: Path) -> None:
    index = copy / ".git" / "index"
    kept = index.read_bytes()
    index.write_bytes(b"damaged")
    try:
        with pytest.raises(NotAWorkingCopy, match="index file"):
            WorkingCopy.at(copy)
    finally:
        index.write_bytes(kept)


def test_the_name_of_a_repository_has_no_password(copy: Path) -> None:
    git(copy, "remote", "add", "origin", "https://user:secret@example.com/owner/name.git")
    try:
        assert WorkingCopy.at(copy).url == "https://example.com/owner/name.git"
    finally:
        git(copy, "remote", "remove", "origin")
