"""A checkout has the files of one commit and no way out of them; the cache brings each commit once and never holds too much."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from gctd.scan.cache.directory import Cache, CacheLimits
from gctd.scan.errors import GitError, LimitExceeded
from gctd.scan.git.checkout import CheckoutLimits, Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.git.program import GitSettings
from gctd.scan.isolation.locks import FileLock
from gctd.scan.isolation.process import MIB
from tests.gctd.scan.conftest import LOOPBACK, local, url_of, web
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.git_http import GitServer, counting_git, serve


def listing(directory: Path) -> list[str]:
    """Every file below a directory, links too."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())


def folders(cache: Path) -> list[str]:
    """List the folder of jobs."""
    return [path.name for path in (cache / "jobs").iterdir()]


@attrs.frozen
class Counted:
    """Checkouts whose calls of git are counted."""

    checkouts: Checkouts
    log: Path

    def calls(self) -> Counter[str]:
        return Counter(self.log.read_text().split())


@pytest.fixture
def counted(cache: Path, tmp_path: Path) -> Counted:
    program = counting_git(tmp_path / "counting")
    git = Git(GitSettings(addresses=LOOPBACK, program=str(program)))
    return Counted(Checkouts(cache, git, parse_url=local), program.parent / "calls")


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


# The cache


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


OTHER_WORKER = """
import asyncio, sys
from pathlib import Path
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.git.program import GitSettings
from tests.gctd.scan.conftest import LOOPBACK, local, web

async def main(cache, program, *repos):
    checkouts = Checkouts(Path(cache), Git(GitSettings(addresses=LOOPBACK, program=program)))
    urls = [web(repo) if repo.startswith("http") else local(repo) for repo in repos]
    for url in urls:
        async with checkouts.checkout(url) as checkout:
            print(checkout.commit_sha, len(list(checkout.path.iterdir())), flush=True)
    if repos[1:] == repos[:1]:
        async with checkouts.checkout(url) as checkout:
            print("held", flush=True)
            await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


def start_worker(cache: Path, program: Path, *repos: Path | str) -> subprocess.Popen[str]:
    arguments = [str(argument) for argument in (cache, program, *repos)]
    return subprocess.Popen([sys.executable, "-c", OTHER_WORKER, *arguments], stdout=subprocess.PIPE, text=True)


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


@pytest.mark.fault
async def test_what_a_killed_worker_left_is_swept_and_what_a_living_one_has_is_not(
    tmp_path: Path, cache: Path, checkouts: Checkouts
) -> None:
    """Also a staged profile, which is in the folder of its job."""
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
        (left / "src" / ".go-crap-cover.out").write_text("mode: set\n")
        await Checkouts(cache, Git()).upkeep()
        assert living.path.exists()
        assert len(folders(cache)) == 2
    assert folders(cache) == []
    assert not any(name.endswith(".go-crap-cover.out") for name in listing(cache))


@pytest.mark.fault
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


@pytest.mark.fault
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


@pytest.mark.fault
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


async def scanned(checkouts: Checkouts, cache: Path, repo: gorepo.GoRepo, *, age: float) -> str:
    """Scan a repository `age` seconds ago, with 1 MiB of builds, and return its id."""
    async with checkouts.checkout(url_of(repo.path)) as checkout:
        checkout.go_caches.mkdir(parents=True, exist_ok=True)
        (checkout.go_caches / "x").write_bytes(bytes(MIB))
    for use in (f"clones/{checkout.repo_id}.git.use", f"builds/{checkout.repo_id}.use"):
        os.utime(cache / use, (time.time() - age, time.time() - age))
    return checkout.repo_id


def kept(cache: Path, ids: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Of which repositories there are clones, and of which builds."""
    return [(cache / "clones" / f"{id_}.git").exists() for id_ in ids], [(cache / "builds" / id_).exists() for id_ in ids]


@pytest.fixture
def three(tmp_path: Path) -> list[gorepo.GoRepo]:
    """Repositories whose clones have some 350 kB each."""
    return [gorepo.make(tmp_path / name, files={"big": os.urandom(300_000).hex()}) for name in ("a", "b", "c")]


PLENTY = CacheLimits(keep_free=0)


async def test_what_was_used_longest_ago_goes_first(cache: Path, git: Git, three: list[gorepo.GoRepo]) -> None:
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

    def free(_: object) -> SimpleNamespace:
        clones, builds = kept(cache, ids)
        return SimpleNamespace(free=(6 - sum(clones) - sum(builds)) * MIB)

    monkeypatch.setattr("shutil.disk_usage", free)
    short = Checkouts(cache, git, cache_limits=CacheLimits(keep_free=3 * MIB))
    async with short.checkout(url_of(three[2].path)) as checkout:
        assert not checkout.transferred
    clones, builds = kept(cache, ids)
    assert sum(clones) + sum(builds) == 3
    assert (clones[0], builds[0], clones[2], builds[2]) == (False, False, True, True)


@pytest.mark.fault
async def test_what_a_killed_worker_has_fetched_counts(tmp_path: Path, cache: Path, three: list[gorepo.GoRepo]) -> None:
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


# Submodules


def with_submodule(tmp_path: Path, address: str, path: str = "sub") -> gorepo.GoRepo:
    """Make a repository `outer` with one submodule at the commit of the repository `inner` next to it."""
    inner = gorepo.make(tmp_path / "inner", kind="single")
    outer = gorepo.make(tmp_path / "outer", kind="multi")
    outer.write({".gitmodules": f'[submodule "s"]\n\tpath = {path}\n\turl = {address}\n'})
    outer.git("add", ".gitmodules")
    outer.git("update-index", "--add", "--cacheinfo", f"160000,{inner.head()},sub")
    outer.git("commit", "-q", "-m", "submodule")
    return outer


@pytest.mark.parametrize("address", ["../inner", "file://{}/inner"])
async def test_submodules_come_only_where_they_are_asked_for(tmp_path: Path, checkouts: Checkouts, address: str) -> None:
    outer = with_submodule(tmp_path, address.format(tmp_path))
    async with checkouts.checkout(url_of(outer.path)) as checkout:
        assert listing(checkout.path / "sub") == []
    async with checkouts.checkout(url_of(outer.path), submodules=True) as checkout:
        assert listing(checkout.path / "sub") == sorted(gorepo.KINDS["single"])


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% pwn",
        "--upload-pack=touch pwn",
        "https://127.0.0.1/x",
        "https://user:pw@host.example/x",
        "git://host.example/x",
    ],
)
async def test_the_address_of_a_submodule_is_judged_like_any_other(tmp_path: Path, checkouts: Checkouts, address: str) -> None:
    outer = with_submodule(tmp_path, address)
    with pytest.raises(GitError, match=r"the submodule sub is refused|disallowed submodule url"):
        await enter_with_submodules(checkouts, outer)
    assert not any("pwn" in name for name in listing(tmp_path))


async def test_local_submodules_are_refused_where_local_repositories_are(tmp_path: Path, cache: Path, git: Git) -> None:
    outer = with_submodule(tmp_path, f"{tmp_path}/inner")
    with pytest.raises(GitError, match="local disk"):
        await enter_with_submodules(Checkouts(cache, git), outer)


async def enter_with_submodules(checkouts: Checkouts, repo: gorepo.GoRepo) -> None:
    async with checkouts.checkout(url_of(repo.path), submodules=True):
        pass
