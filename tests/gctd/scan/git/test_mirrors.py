"""The cache brings each commit once over the network, for jobs and workers at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from gctd.scan.cache.directory import Cache
from gctd.scan.git.checkout import Checkouts
from gctd.scan.isolation.locks import FileLock
from tests.gctd.scan.conftest import url_of, web
from tests.gctd.scan.git.checking_out import Counted, folders, listing, start_worker
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.git_http import GitServer, counting_git, serve

pytestmark = pytest.mark.real


async def test_the_second_scan_of_a_repository_transfers_nothing(tmp_path: Path, counted: Counted) -> None:
    repo = gorepo.make(tmp_path / "repo")
    for expected in (True, False, False):
        async with counted.checkouts.checkout(url_of(repo.path)) as checkout:
            assert checkout.transferred is expected
    assert counted.calls() == {"ls-remote": 3, "fetch": 1, "init": 1, "read-tree": 3}


@attrs.frozen
class Served:
    """A repository behind a server that counts what is asked of it."""

    server: GitServer
    repo: gorepo.GoRepo

    @property
    def url(self) -> str:
        return f"{self.server.url}/repo"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    repo = gorepo.make(tmp_path / "served" / "repo")
    with serve(tmp_path / "served") as server:
        yield Served(server, repo)


async def test_a_host_is_asked_for_objects_once_and_then_only_where_the_branch_is(served: Served, checkouts: Checkouts) -> None:
    for _ in range(3):
        async with checkouts.checkout(web(served.url)) as checkout:
            assert checkout.commit_sha == served.repo.head()
    assert served.server.commands == ["ls-refs", "ls-refs", "fetch", "ls-refs", "ls-refs"]
    served.repo.write({"new.go": "package single\n"}).commit()
    async with checkouts.checkout(web(served.url)) as checkout:
        assert (checkout.path / "new.go").exists()
    assert served.server.commands.count("fetch") == 2


def test_two_workers_at_the_same_moment_clone_once(served: Served, tmp_path: Path, cache: Path) -> None:
    workers = [start_worker(cache, Path("git"), served.url) for _ in range(2)]
    for worker in workers:
        output, _ = worker.communicate(timeout=60)
        assert output.splitlines() == [f"{served.repo.head()} 3"]
    assert served.server.commands.count("fetch") == 1


async def test_a_mirror_that_has_grown_is_made_anew(tmp_path: Path, counted: Counted, cache: Path) -> None:
    """After fifty fetches; the packs of old commits are not kept for ever."""
    repo = gorepo.make(tmp_path / "repo")
    async with counted.checkouts.checkout(url_of(repo.path)):
        pass
    (packs,) = (cache / "clones").glob("*.git/objects/pack")
    for number in range(50):
        (packs / f"pack-{number}.pack").touch()
    old = repo.head()
    repo.write({"new.go": "package single\n"}).commit()
    async with counted.checkouts.checkout(url_of(repo.path)) as checkout:
        assert (checkout.path / "new.go").exists()
    assert len(list(packs.glob("*.pack"))) == 1
    async with counted.checkouts.checkout(url_of(repo.path), old) as checkout:
        assert not (checkout.path / "new.go").exists()
    assert counted.calls()["init"] == 2


async def test_a_new_commit_is_fetched_into_the_same_mirror(tmp_path: Path, counted: Counted) -> None:
    repo = gorepo.make(tmp_path / "repo")
    old = repo.head()
    for _ in range(2):
        async with counted.checkouts.checkout(url_of(repo.path)) as checkout:
            assert checkout.commit_sha == repo.head()
        repo.write({"new.go": "package single\n"}).commit()
    async with counted.checkouts.checkout(url_of(repo.path), old) as checkout:
        assert not checkout.transferred
        assert "new.go" not in listing(checkout.path)
    assert counted.calls() == {"ls-remote": 2, "fetch": 2, "init": 1, "read-tree": 3}


async def test_a_branch_that_was_rewritten_is_followed(tmp_path: Path, checkouts: Checkouts) -> None:
    repo = gorepo.make(tmp_path / "repo")
    async with checkouts.checkout(url_of(repo.path)):
        pass
    repo.write({"other.go": "package single\n"}).git("add", "--all")
    repo.git("commit", "-q", "--amend", "-m", "rewritten")
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        assert checkout.commit_sha == repo.head()


async def test_jobs_on_one_repository_at_a_time_fetch_once(tmp_path: Path, counted: Counted) -> None:
    repo = gorepo.make(tmp_path / "repo")

    async def job() -> str:
        async with counted.checkouts.checkout(url_of(repo.path)) as checkout:
            return (checkout.path / "go.mod").read_text()

    assert await asyncio.gather(*(job() for _ in range(5))) == [gorepo.KINDS["single"]["go.mod"]] * 5
    assert counted.calls()["fetch"] == 1


def test_workers_in_several_processes_share_the_mirrors(tmp_path: Path, cache: Path) -> None:
    """Three at once on the same two repositories: each sees the right files, and each repository is transferred once."""
    program = counting_git(tmp_path / "counting")
    repos = [gorepo.make(tmp_path / kind, kind=kind) for kind in ("single", "multi")]
    paths = [repo.path for repo in repos]
    workers = [start_worker(cache, program, *paths) for _ in range(3)]
    expected = [f"{repos[0].head()} 3", f"{repos[1].head()} 3"]
    outputs = [worker.communicate(timeout=60)[0].splitlines() for worker in workers]
    assert outputs == [expected] * 3
    assert [worker.returncode for worker in workers] == [0] * 3
    calls = Counter((program.parent / "calls").read_text().split())
    assert calls["fetch"] == 2
    assert folders(cache) == []


async def test_jobs_on_a_repository_get_the_same_folder_one_after_the_other_and_others_at_the_same_time(
    tmp_path: Path, checkouts: Checkouts, cache: Path
) -> None:
    """Go finds its builds by their path. The files that a killed worker left in a folder are removed first."""
    repo = gorepo.make(tmp_path / "repo")
    async with checkouts.checkout(url_of(repo.path)) as first, checkouts.checkout(url_of(repo.path)) as second:
        assert first.path != second.path
    (first.job / "src").mkdir(parents=True)
    (first.job / "src" / "left").touch()
    async with checkouts.checkout(url_of(repo.path)) as third:
        assert third.path == first.path
        assert listing(third.path) == sorted(gorepo.KINDS["single"])


async def test_a_fetch_that_was_killed_does_not_stop_the_next(tmp_path: Path, checkouts: Checkouts, cache: Path) -> None:
    """A dead git leaves lock files and half a pack in the mirror."""
    repo = gorepo.make(tmp_path / "repo")
    async with checkouts.checkout(url_of(repo.path)):
        pass
    (mirror,) = (cache / "clones").glob("*.git")
    for name in ("shallow.lock", "HEAD.lock", "refs/gctd/x.lock", "objects/pack/tmp_pack_x"):
        (mirror / name).touch()
    repo.write({"new.go": "package single\n"}).commit()
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        assert checkout.commit_sha == repo.head()
    assert not list(mirror.rglob("tmp_pack*"))


@pytest.mark.parametrize("damage", ["packs gone", "head gone", "pack garbled"])
async def test_a_damaged_mirror_is_made_anew(tmp_path: Path, checkouts: Checkouts, cache: Path, damage: str) -> None:
    repo = gorepo.make(tmp_path / "repo")
    async with checkouts.checkout(url_of(repo.path)):
        pass
    (mirror,) = (cache / "clones").glob("*.git")
    for path in list(mirror.glob("objects/pack/*.pack")) if damage != "head gone" else [mirror / "HEAD"]:
        path.chmod(0o600)
        if damage == "pack garbled":
            path.write_bytes(path.read_bytes()[:12] + bytes(100))
        else:
            path.unlink()
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        assert listing(checkout.path) == sorted(gorepo.KINDS["single"])


async def test_a_waiting_job_does_not_hold_up_the_others(tmp_path: Path, cache: Path, checkouts: Checkouts) -> None:
    """A mirror that another process holds is awaited. The event loop continues, and the wait can be cancelled."""
    repos = [gorepo.make(tmp_path / name) for name in ("a", "b")]
    async with checkouts.checkout(url_of(repos[0].path)) as checkout:
        lock = Cache(cache).clones.lock(f"{checkout.repo_id}.git")
    holder = FileLock.try_acquire(lock)
    assert holder is not None
    try:
        waiting = asyncio.create_task(enter(checkouts, repos[0]))
        await asyncio.wait_for(enter(checkouts, repos[1]), 60)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    finally:
        holder.release()
    await enter(checkouts, repos[0])
    assert folders(cache) == []


async def enter(checkouts: Checkouts, repo: gorepo.GoRepo) -> None:
    async with checkouts.checkout(url_of(repo.path)):
        pass
