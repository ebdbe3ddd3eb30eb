"""A checkout has the files of one commit, within the limits, and no way out of them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gctd.scan.disk import MIB
from gctd.scan.errors import GitError, LimitExceeded
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.git.program import GitSettings
from gctd.scan.git.tree import CheckoutLimits
from tests.gctd.scan.conftest import local, url_of
from tests.gctd.scan.git.checking_out import Counted, folders, listing
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real

# The files of a commit


async def test_the_default_branch_is_checked_out(tmp_path: Path, checkouts: Checkouts, cache: Path) -> None:
    repo = gorepo.make(tmp_path / "repo", kind="nested")
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        assert (checkout.ref, checkout.commit_sha) == ("main", repo.head())
        assert listing(checkout.path) == sorted(gorepo.KINDS["nested"])
        assert checkout.path.is_relative_to(cache)
        assert checkout.transferred
    assert folders(cache) == []


async def test_a_branch_a_tag_and_a_commit_are_checked_out(tmp_path: Path, checkouts: Checkouts) -> None:
    repo = gorepo.make(tmp_path / "repo")
    first = repo.head()
    repo.git("tag", "-a", "-m", "x", "v1")
    second = repo.write({"second.go": "package single\n"}).commit()
    repo.git("checkout", "-q", "-b", "side/branch")
    third = repo.write({"third.go": "package single\n"}).commit()
    for ref, commit, count in [("v1", first, 3), (second, second, 4), (first, first, 3), ("side/branch", third, 5)]:
        async with checkouts.checkout(url_of(repo.path), ref) as checkout:
            assert (checkout.ref, checkout.commit_sha, len(listing(checkout.path))) == (ref, commit, count)


async def test_all_files_have_the_time_of_their_commit(tmp_path: Path, git: Git) -> None:
    repo = gorepo.make(tmp_path / "repo", kind="nested")
    (repo.path / "link").symlink_to("nowhere")
    repo.commit()
    deep = "/".join(["d" * 200] * 19) + "/" + "f" * 180  # with the place of the checkout, longer than a path may be
    blob = repo.git("hash-object", "-w", "go.mod")
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{deep}")
    repo.git("commit", "--quiet", "--message", "deep")
    at = int(repo.git("log", "-1", "--format=%at"))
    checkouts = Checkouts(tmp_path / ("c" * 150), git, parse_url=local)
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        walk = os.fwalk(checkout.path)
        times = {name: os.lstat(name, dir_fd=fd).st_mtime_ns for _, _, names, fd in walk for name in names}
    assert set(times) >= {"go.mod", "link", "f" * 180}
    (time,) = set(times.values())
    assert time // 10**9 == at


async def test_commits_of_one_moment_have_different_times_and_each_has_the_same_time_always(
    tmp_path: Path, checkouts: Checkouts
) -> None:
    """An amended commit keeps the time of its author. Files of equal size and time would be the same files for go."""
    repo = gorepo.make(tmp_path / "repo")
    first = repo.head()
    repo.git("tag", "first")
    repo.git("commit", "--quiet", "--amend", "--message", "amended")
    times = []
    for commit in (first, repo.head(), first):
        async with checkouts.checkout(url_of(repo.path), commit) as checkout:
            times.append((checkout.path / "go.mod").stat().st_mtime_ns)
    assert times[0] == times[2] != times[1]
    assert times[0] // 10**9 == times[1] // 10**9


async def test_a_commit_is_checked_out_under_the_name_of_a_branch_that_has_moved_on_or_is_gone(
    tmp_path: Path, counted: Counted
) -> None:
    repo = gorepo.make(tmp_path / "repo")
    repo.git("branch", "gone")
    seen = repo.head()
    repo.write({"second.go": "package single\n"}).commit()
    repo.git("branch", "--delete", "--force", "gone")
    for name in ("main", "gone"):
        async with counted.checkouts.checkout(url_of(repo.path), name, commit=seen) as checkout:
            assert (checkout.ref, checkout.commit_sha) == (name, seen)
            assert not (checkout.path / "second.go").exists()
    assert counted.calls()["ls-remote"] == 0


async def test_a_commit_that_is_not_there(tmp_path: Path, checkouts: Checkouts, cache: Path) -> None:
    repo = gorepo.make(tmp_path / "repo")
    with pytest.raises(GitError, match="not in the repository") as caught:
        async with checkouts.checkout(url_of(repo.path), "a" * 40):
            pass
    assert caught.value.permanent
    assert folders(cache) == []


async def test_a_blob_or_a_tree_is_no_commit(tmp_path: Path, checkouts: Checkouts) -> None:
    repo = gorepo.make(tmp_path / "repo")
    repo.git("tag", "tree", repo.git("rev-parse", "HEAD^{tree}"))
    with pytest.raises(GitError, match="not a commit"):
        async with checkouts.checkout(url_of(repo.path), "tree"):
            pass


async def test_a_repository_with_sha256_ids(tmp_path: Path, checkouts: Checkouts) -> None:
    path = tmp_path / "repo"
    path.mkdir()
    repo = gorepo.GoRepo(path)
    repo.git("init", "-q", "--object-format=sha256", "-b", "main")
    commit = repo.write(gorepo.KINDS["single"]).commit()
    async with checkouts.checkout(url_of(path)) as checkout:
        assert checkout.commit_sha == commit
        assert len(commit) == 64


@pytest.mark.parametrize("end", ["error", "cancelled"])
async def test_the_folder_of_a_job_is_gone_however_it_ends(tmp_path: Path, checkouts: Checkouts, cache: Path, end: str) -> None:
    """With any content: directories without permissions, two thousand levels of them, links out."""
    repo = gorepo.make(tmp_path / "repo")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    inside = asyncio.Event()

    async def job() -> None:
        async with checkouts.checkout(url_of(repo.path)) as checkout:
            leave_a_mess(checkout.job, outside)
            inside.set()
            if end == "error":
                raise LookupError
            await asyncio.sleep(60)

    running = asyncio.create_task(job())
    await inside.wait()
    if end == "cancelled":
        running.cancel()
    with pytest.raises(LookupError if end == "error" else asyncio.CancelledError):
        await running
    assert folders(cache) == []
    assert (outside / "kept").exists()


def leave_a_mess(directory: Path, outside: Path) -> None:
    (directory / "link").symlink_to(outside)
    (directory / "closed").mkdir()
    (directory / "closed" / "file").touch(mode=0)
    (directory / "closed").chmod(0)
    here = os.getcwd()  # noqa: PTH109 - back to it below
    try:
        os.chdir(directory)
        for _ in range(2_000):
            os.mkdir("d")  # noqa: PTH102 - too deep for a path
            os.chdir("d")
    finally:
        os.chdir(here)


# Repositories that are not what they should be


async def test_no_link_leads_out_of_a_checkout(tmp_path: Path, checkouts: Checkouts) -> None:
    """Links that lead out, nowhere or in circles are plain files with the target's name in them; the others are links."""
    repo = gorepo.make(tmp_path / "repo")
    links = {
        "leak.go": "/etc/passwd",
        "etc": "/etc",
        "m/go.mod": "../../../../../../etc/hostname",
        "up": "..",
        "up2": "m/../..",
        "via": "inside/../../x",
        "self": "self",
        "circle1": "circle2",
        "circle2": "circle1",
        "dangling": "nowhere.go",
        "hop1": "hop2",
        "hop2": "/etc/passwd",
        "proc": "/proc/self/root/etc/passwd",
        "inside": "single.go",
        "m/also.go": "../single.go",
        "dir": "m",
        "twice": "dir/also.go",
    }
    (repo.path / "m").mkdir()
    for name, target in links.items():
        (repo.path / name).symlink_to(target)
    repo.commit()
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        made = {name for name in links if (checkout.path / name).is_symlink()}
        assert made == {"inside", "m/also.go", "dir", "twice"}
        assert set(checkout.refused_links) == set(links) - made
        assert (checkout.path / "leak.go").read_text() == "/etc/passwd"
        assert (checkout.path / "twice").read_text() == (checkout.path / "single.go").read_text()
        root = checkout.path.resolve()
        assert all(path.resolve().is_relative_to(root) for path in checkout.path.rglob("*"))


async def test_nothing_that_a_repository_holds_is_run(tmp_path: Path, checkouts: Checkouts) -> None:
    """Hooks, filters, text conversions, fsmonitor in the source's configuration, attributes that ask for them."""
    repo = gorepo.make(tmp_path / "repo")
    canary = tmp_path / "pwn"
    for key in ("filter.x.smudge", "filter.x.process", "core.fsmonitor", "diff.x.textconv", "uploadpack.packObjectsHook"):
        repo.git("config", key, f"touch {canary}")
    repo.git("config", "core.fsmonitor", "false")
    hooks = repo.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-receive", "post-index-change", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (hooks / name).chmod(0o755)
    repo.write({".gitattributes": "*.go filter=x diff=x\n"})
    repo.git("-c", "core.hooksPath=/dev/null", "-c", "filter.x.clean=cat", "-c", "filter.x.process=", "add", "--all")
    repo.git("-c", "core.hooksPath=/dev/null", "-c", "filter.x.clean=cat", "-c", "filter.x.process=", "commit", "-q", "-m", "x")
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        assert (checkout.path / "single.go").exists()
    assert not canary.exists()


@pytest.mark.parametrize(
    ("limits", "files", "reason"),
    [
        (CheckoutLimits(files=2), {}, "more than 2 files"),
        (CheckoutLimits(total_bytes=MIB), {"a": "x" * MIB, "b": "y"}, "larger than 1 MiB together"),
        (CheckoutLimits(file_bytes=MIB), {"big": "x" * (MIB + 1)}, "a file of the repository is larger than 1 MiB: big"),
        (CheckoutLimits(depth=5), {"1/2/3/4/5/6": "x"}, "deeper"),
    ],
)
async def test_a_repository_beyond_the_limits_is_refused_before_it_is_written(
    tmp_path: Path, cache: Path, git: Git, limits: CheckoutLimits, files: dict[str, str], reason: str
) -> None:
    repo = gorepo.make(tmp_path / "repo", files={**gorepo.KINDS["single"], **files})
    with pytest.raises(LimitExceeded, match=reason) as caught:
        async with Checkouts(cache, git, limits).checkout(url_of(repo.path)):
            pass
    assert caught.value.permanent
    assert folders(cache) == []


async def test_more_than_one_fetch_may_bring_is_refused(tmp_path: Path, cache: Path) -> None:
    repo = gorepo.make(tmp_path / "repo", files={"noise": os.urandom(2 * MIB).hex()})
    git = Git(GitSettings(transfer_bytes=MIB))
    with pytest.raises(LimitExceeded, match="larger than 1 MiB"):
        async with Checkouts(cache, git).checkout(url_of(repo.path)):
            pass
