"""The cache stays within its limits, and a sweep takes nothing that a living worker has."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gctd.scan.cache import directory
from gctd.scan.cache.directory import Cache, CacheLimits
from gctd.scan.disk import MIB
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from tests.gctd.scan.conftest import url_of
from tests.gctd.scan.git.checking_out import folders, kept, listing, start_worker
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real


async def test_remains_of_a_killed_worker_are_swept_and_those_of_a_living_one_stay(
    tmp_path: Path, cache: Path, checkouts: Checkouts
) -> None:
    """Also a profile, which is in the folder of its job."""
    repo = gorepo.make(tmp_path / "repo")
    async with checkouts.checkout(url_of(repo.path)) as living:
        dead = start_worker(cache, Path("git"), repo.path, repo.path)
        assert dead.stdout is not None
        try:
            while (await asyncio.to_thread(dead.stdout.readline)) != "held\n":
                assert dead.poll() is None
        finally:
            dead.kill()
            dead.communicate()
        (left,) = [path for path in (cache / "jobs").iterdir() if path.is_dir() and path != living.job]
        (left / "src" / "profile").write_text("mode: set\n")
        await Checkouts(cache, Git()).upkeep()
        assert living.path.exists()
        assert len(folders(cache)) == 2
    assert folders(cache) == []
    assert not any(name.endswith("profile") for name in listing(cache))


async def test_sweeping_takes_nothing_from_jobs_that_begin_and_end_meanwhile(cache: Path) -> None:
    ended = threading.Event()

    async def jobs() -> None:
        mine = Cache(cache)
        for _ in range(30):
            async with mine.job("0123456789ab") as folder:
                (folder / "file").touch()
                await asyncio.sleep(0.002)
                assert (folder / "file").exists()

    async def sweeps() -> int:
        mine, swept = Cache(cache), 0
        while not ended.is_set():
            swept += await mine.sweep()
        return swept

    # Each in a separate thread, so that they meet between any two calls of the system.
    sweeping = [asyncio.create_task(asyncio.to_thread(asyncio.run, sweeps())) for _ in range(2)]
    try:
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, jobs()) for _ in range(2)))
    finally:
        ended.set()
    assert await asyncio.gather(*sweeping) == [0, 0]
    assert folders(cache) == []


async def test_a_job_that_is_cancelled_while_it_waits_for_its_folder_holds_no_folder(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is left by a killed worker, and its removal takes some time."""
    mine = Cache(cache)
    left = cache / "jobs" / "0123456789ab-0"
    left.mkdir()
    removing = asyncio.Event()

    async def slow(path: Path) -> bool:
        removing.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def job() -> Path:
        async with mine.job("0123456789ab") as folder:
            return folder

    with monkeypatch.context() as patch:
        patch.setattr(directory, "remove", slow)
        cancelled = asyncio.create_task(job())
        await removing.wait()
        cancelled.cancel()
        await asyncio.wait([cancelled])
    assert await job() == left
    assert folders(cache) == []


async def scanned(checkouts: Checkouts, cache: Path, repo: gorepo.GoRepo, *, age: float) -> str:
    """Scan a repository `age` seconds ago, with 1 MiB of builds, and return its id."""
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        checkout.go_caches.mkdir(parents=True, exist_ok=True)
        (checkout.go_caches / "x").write_bytes(bytes(MIB))
    for use in (f"clones/{checkout.repo_id}.git.use", f"builds/{checkout.repo_id}.use"):
        os.utime(cache / use, (time.time() - age, time.time() - age))
    return checkout.repo_id


@pytest.fixture
def three(tmp_path: Path) -> list[gorepo.GoRepo]:
    """Repositories whose clones have some 350 kB each."""
    return [gorepo.make(tmp_path / name, files={"big": os.urandom(300_000).hex()}) for name in ("a", "b", "c")]


PLENTY = CacheLimits(keep_free=0)


async def test_the_least_recently_used_cache_goes_first(cache: Path, git: Git, three: list[gorepo.GoRepo]) -> None:
    """Clones and builds have separate limits. A clone or build in use by a job stays."""
    checkouts = Checkouts(cache, git, cache_limits=PLENTY)
    ids = [await scanned(checkouts, cache, repo, age=age) for age, repo in zip((300, 200, 100), three, strict=True)]
    assert await Cache(cache, PLENTY).make_room() == 0
    tight = Cache(cache, CacheLimits(builds=2 * MIB + MIB // 2, keep_free=0))
    assert MIB <= await tight.make_room() < 2 * MIB
    assert kept(cache, ids) == ([True] * 3, [False, True, True])
    tight = Cache(cache, CacheLimits(clones=MIB // 2, keep_free=0))
    async with tight.clones.using(f"{ids[0]}.git"):
        os.utime(cache / "clones" / f"{ids[0]}.git.use", (1, 1))
        assert await tight.make_room() > 0
    assert kept(cache, ids) == ([True, False, False], [False, True, True])
    assert not (cache / "clones" / f"{ids[1]}.git.use").exists()
    await Cache(cache, CacheLimits(clones=0, builds=0, keep_free=0)).make_room()
    assert kept(cache, ids) == ([False] * 3, [False] * 3)
    async with checkouts.checkout(url_of(three[0].path)) as checkout:
        assert checkout.transferred


async def test_caches_go_until_enough_is_free_on_the_disk(
    cache: Path, git: Git, three: list[gorepo.GoRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clones and builds, whichever was used longest ago; and when a disk is short, room is made before a checkout."""
    checkouts = Checkouts(cache, git, cache_limits=PLENTY)
    ids = [await scanned(checkouts, cache, repo, age=age) for age, repo in zip((300, 200, 100), three, strict=True)]

    def disk(_: object) -> SimpleNamespace:
        clones, builds = kept(cache, ids)
        return SimpleNamespace(f_bavail=515 - sum(clones) - sum(builds), f_frsize=MIB, f_blocks=5200)

    monkeypatch.setattr(os, "statvfs", disk)
    short = Checkouts(cache, git, cache_limits=CacheLimits(keep_free=3 * MIB))
    async with short.checkout(url_of(three[2].path)) as checkout:
        assert not checkout.transferred
    clones, builds = kept(cache, ids)
    assert sum(clones) + sum(builds) == 3
    assert (clones[0], builds[0], clones[2], builds[2]) == (False, False, True, True)


def test_of_a_small_disk_a_tenth_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the usual 2 GiB, a disk of 4 GiB would have little room for caches. Enough for a job stays free in any case."""
    cache = Cache(tmp_path, CacheLimits())
    for free, total, short in ((999, 10_000, True), (1001, 10_000, False), (511, 1000, True), (513, 1000, False)):
        disk = SimpleNamespace(f_bavail=free, f_frsize=MIB, f_blocks=total)
        monkeypatch.setattr(os, "statvfs", lambda _, disk=disk: disk)
        assert cache.is_short() is short


async def test_commits_fetched_by_a_killed_worker_count(tmp_path: Path, cache: Path, three: list[gorepo.GoRepo]) -> None:
    """It had no time to report the amount. The amount is measured, and the clone can be removed."""
    dead = start_worker(cache, Path("git"), three[0].path, three[0].path)
    assert dead.stdout is not None
    try:
        while (await asyncio.to_thread(dead.stdout.readline)) != "held\n":
            assert dead.poll() is None
        clones = Cache(cache).clones
        (item,) = await clones.items()
        assert item.size is not None
        assert item.size > 300_000
        assert await item.forget() == 0
    finally:
        dead.kill()
        dead.communicate()
    assert (cache / "clones" / f"{item.name}.use").read_text() == ""
    assert await clones.items() == [item]
    assert (cache / "clones" / f"{item.name}.use").read_text() == str(item.size)
    assert await item.forget() == item.size
    assert await clones.items() == []
