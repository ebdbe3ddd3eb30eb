"""The build cache of a repository begins with Go's own library, which only code of ours has built; nothing else is shared."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gctd.scan.cache.lru import LruDirectory
from gctd.scan.cache.stdlib import StdlibBuildCache
from gctd.scan.git.checkout import Checkouts
from gctd.scan.go.coverage_run.plan import BeginStage, GoTestRun, Plan
from gctd.scan.go.coverage_run.progress import PackageCount
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.toolchain import GoCaches, Toolchain
from tests.gctd.scan.conftest import url_of
from tests.support.tracker import go_library
from tests.support.tracker import go_repo as gorepo

pytestmark = pytest.mark.real

FILES = {"go.mod": gorepo.module("example.com/m"), **gorepo.tested("m"), **gorepo.under("bare", gorepo.tested("bare"))}
del FILES["bare/bare_test.go"]


REPORTING = """#!/bin/sh
case $1 in
  list) printf 'internal/abi\\nio\\nfmt\\n' ;;
  build) mkdir -p "$GOCACHE/ab"; printf 'internal/abi\\nio\\n' >&2 ;;
esac
"""
"""A go that has three packages to build, and stops after two."""


def counting(toolchain: Toolchain, directory: Path) -> tuple[Toolchain, Path]:
    """A go that notes each program of Go's that it runs (-toolexec), and where."""
    directory.mkdir()
    log = directory / "log"
    note = directory / "note"
    note.write_text(f'#!/bin/sh\ncase "$2" in -V=full) ;; *) echo "$TOOLEXEC_IMPORTPATH" >> {log};; esac\nexec "$@"\n')
    program = directory / "go"
    program.write_text(f'#!/bin/sh\nexport GOFLAGS="$GOFLAGS -toolexec={note}"\nexec {toolchain.go} "$@"\n')
    for path in (note, program):
        path.chmod(0o755)
    return Toolchain(program, toolchain.version), log


async def scan(checkouts: Checkouts, repo: gorepo.GoRepo, toolchain: Toolchain) -> tuple[GoTestRun, Path]:
    """Run a repository's tests as a scan does; the run, and the Go cache it had."""
    async with checkouts.checkout(url_of(repo.path)) as checkout:

        async def restore(packages: Sequence[str], seconds: float, begin: BeginStage) -> None:
            stdlib = checkouts.stdlib(toolchain)
            await stdlib.restore(packages, checkout.go_caches, checkout.job, flags=("-short",), seconds=seconds, begin=begin)

        plan = Plan(
            source=checkout.path,
            project=".",
            job=checkout.job,
            caches=GoCaches.below(checkout.go_caches),
            timeout=300,
            restore=restore,
        )

        async def on_stage(_: str) -> None:
            """Stages are not observed."""

        return await run_tests(toolchain, plan, on_stage), checkout.go_caches


async def test_a_repository_begins_with_go_s_own_library_built_by_nobody_else(
    tmp_path: Path, checkouts: Checkouts, toolchain: Toolchain
) -> None:
    """Its builds are made in its own cache, which has no file in common with another."""
    counted, log = counting(toolchain, tmp_path / "counting")
    seed = checkouts._cache.builds.path(checkouts.stdlib(counted).name())
    copy(await go_library.built(), seed)
    run, cache = await scan(checkouts, gorepo.make(tmp_path / "repo", files=FILES), counted)
    assert run.profile is not None
    programs = set(log.read_text().splitlines())
    assert "example.com/m.test" in programs
    assert {name for name in programs if not name.startswith("example.com/m")} == set()
    outputs = [path for path in (seed / "build").rglob("*-d") if path.is_file()]
    assert not any(b"example.com/m" in path.read_bytes() for path in outputs)
    check_nothing_is_shared(seed, cache)


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-R", source, target], check=True)


def check_nothing_is_shared(*caches: Path) -> None:
    """No file of one is a file of another, or a link to one."""
    seen = set[int]()
    for cache in caches:
        files = [path for path in cache.rglob("*") if not path.is_dir()]
        assert len(files) > 500
        assert not any(path.is_symlink() for path in files)
        inodes = {path.stat().st_ino for path in files}
        assert not inodes & seen
        seen |= inodes


@pytest.fixture
def stdlib(tmp_path: Path) -> StdlibBuildCache:
    """StdlibBuildCache of a go that builds one file, and notes what it was asked to."""
    program = tmp_path / "go"
    program.write_text(
        f'#!/bin/sh\necho "$GOFLAGS $GOPROXY $*" >> {tmp_path}/log\nmkdir -p $GOCACHE/ab\necho built > $GOCACHE/ab/x-d\n'
        f"sleep 0.2\nexit $(cat {tmp_path}/code 2>/dev/null || echo 0)\n"
    )
    program.chmod(0o755)
    return StdlibBuildCache(LruDirectory(tmp_path / "builds"), Toolchain(program, "go1.99"))


async def begin(stdlib: StdlibBuildCache, tmp_path: Path, repo: str, *packages: str, flags: Sequence[str] = ()) -> Path:
    cache = stdlib.directory.path(repo)
    (cache / "build" / "ab").mkdir(parents=True, exist_ok=True)
    async with stdlib.directory.using(repo):
        job = tmp_path / f"job-{os.urandom(4).hex()}"
        await stdlib.restore(packages, cache, job, flags=flags, seconds=60)
    return cache / "build"


def calls(tmp_path: Path) -> list[str]:
    return [line for line in (tmp_path / "log").read_text().splitlines() if " build " in line]


async def test_only_the_first_scan_of_a_repository_is_given_something(stdlib: StdlibBuildCache, tmp_path: Path) -> None:
    """Later its tests have had the cache, and may have put anything there: links, say."""
    cache = await begin(stdlib, tmp_path, "one", "fmt")
    assert (cache / "ab" / "x-d").read_text() == "built\n"
    shutil.rmtree(cache / "ab")
    (tmp_path / "outside").mkdir()
    (cache / "ab").symlink_to(tmp_path / "outside")
    await begin(stdlib, tmp_path, "one", "fmt", flags=["-race"])
    assert list((tmp_path / "outside").iterdir()) == []
    assert len(calls(tmp_path)) == 1


@pytest.mark.real
async def test_the_first_scan_reports_the_packages_that_go_builds(tmp_path: Path) -> None:
    """The names of the packages come from `go list` before the build, and from `go build -v` during the build."""
    program, job, count = tmp_path / "go", tmp_path / "job", PackageCount(())
    program.write_text(REPORTING)
    program.chmod(0o755)
    stdlib = StdlibBuildCache(LruDirectory(tmp_path / "builds"), Toolchain(program, "go1.99"))
    begun: list[str] = []

    async def begin() -> PackageCount:
        begun.append("stdlib")
        return count

    into = stdlib.directory.path("one")
    into.mkdir(parents=True)
    for number in (1, 2):
        folder = job.with_name(f"job-{number}")
        await stdlib.restore(["fmt"], into, folder, flags=(), seconds=60, begin=begin)
    assert begun == ["stdlib"]
    assert (count.progress.done, count.progress.total) == (2, 3)


async def test_entries_of_go_in_the_cache_stay(stdlib: StdlibBuildCache, tmp_path: Path) -> None:
    there = stdlib.directory.path("one") / "build" / "ab" / "x-d"
    there.parent.mkdir(parents=True)
    there.write_text("there\n")
    await begin(stdlib, tmp_path, "one", "fmt")
    assert there.read_text() == "there\n"


async def test_only_names_of_the_library_reach_go_and_no_network(stdlib: StdlibBuildCache, tmp_path: Path) -> None:
    bad = ["-toolexec=x", "internal/abi", "vendor/golang.org/x/net", "net/http/internal", "../x", "a.b/c", "$(x)", "net/http"]
    await begin(stdlib, tmp_path, "one", *bad, flags=["-race", "-run=X", "-tags=y"])
    flags, _, rest = calls(tmp_path)[0].partition(" off build -v -- ")
    assert rest == "net/http internal/coverage/cfile runtime/coverage testing/internal/testdeps"
    assert flags.split() == ["-buildvcs=false", "-modcacherw", "-race"]


async def test_scans_at_the_same_moment_wait_for_one_another(stdlib: StdlibBuildCache, tmp_path: Path) -> None:
    caches = await asyncio.gather(*(begin(stdlib, tmp_path, repo, "fmt") for repo in ("one", "one", "two", "three")))
    assert all((cache / "ab" / "x-d").exists() for cache in caches)
    assert len(calls(tmp_path)) == 3


async def test_a_library_that_cannot_be_built_is_left_to_the_scan(stdlib: StdlibBuildCache, tmp_path: Path) -> None:
    (tmp_path / "code").write_text("1")
    await begin(stdlib, tmp_path, "one", "fmt")
    stdlib.toolchain.go.unlink()
    cache = await begin(stdlib, tmp_path, "two", "fmt")
    assert list(cache.rglob("*-d")) == []


async def test_the_build_of_a_killed_scan_begins_again(stdlib: StdlibBuildCache, tmp_path: Path) -> None:
    left = stdlib.directory.path("one") / "build.new" / "ab"
    left.mkdir(parents=True)
    (left / "half-d").touch()
    cache = await begin(stdlib, tmp_path, "one", "fmt")
    assert [path.name for path in cache.rglob("*-d")] == ["x-d"]
    assert not left.exists()
