"""An analysis is used for a later request only if another run would end the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import attrs
import pytest
import pytest_asyncio

from gctd.broker.blobs import MemoryBlobs
from gctd.domain.repo.config import ProjectConfig
from gctd.settings import Settings
from gctd.worker.scans.opening import open_work
from gctd.worker.scans.scanning import Scanning
from gctd.worker.work import ResolvedRef
from tests.gctd.scan.hostile.conftest import task
from tests.support.tracker import go_library
from tests.support.tracker.go_repo import GoRepo, make

pytestmark = pytest.mark.real


@pytest_asyncio.fixture
async def scanning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scanning]:
    """The work of a worker that runs tests as they are."""
    monkeypatch.setenv("GOPROXY", "off")
    cache = tmp_path / "cache"
    await go_library.give(cache)
    settings = Settings(cache_directory=cache, allow_local=True, git_metadata=False, sandbox="off")
    yield await open_work(settings, MemoryBlobs())


async def is_reused(scanning: Scanning, repo: GoRepo, test_args: str | None = None) -> bool:
    """Whether a request is answered by an analysis that was made before."""

    resolved: list[object] = []

    async def on_stage(stage: str, progress: object = None) -> None:
        if isinstance(progress, ResolvedRef):
            resolved.append((stage, progress))

    wanted = task(repo, ProjectConfig(test_args=test_args))
    wanted = attrs.evolve(wanted, reuse_since=wanted.created_at - timedelta(hours=1))
    reused = bool((await scanning.scan(wanted, on_stage, lambda _: None)).reused_from)
    assert resolved == [("clone", ResolvedRef(ref="main", commit_sha=repo.head()))], "the commit is told before any test runs"
    return reused


async def test_a_run_whose_tests_were_cut_short_is_not_reused(tmp_path: Path, scanning: Scanning) -> None:
    """It may have had too little time, memory or room for its files."""
    repo = make(tmp_path / "repo", kind="slow")
    assert not await is_reused(scanning, repo, "-timeout=1s")
    assert not await is_reused(scanning, repo, "-timeout=1s")


async def test_an_analysis_of_another_platform_or_without_c_code_is_not_reused(
    tmp_path: Path, scanning: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, programs = make(tmp_path / "repo"), tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setattr("gctd.scan.go.toolchain._SYSTEM_PATH", (str(programs),))
    assert not await is_reused(scanning, repo)
    assert await is_reused(scanning, repo)
    for compiler in ("gcc", "clang"):
        (programs / compiler).write_text("#!/bin/sh\n")
        (programs / compiler).chmod(0o755)
    assert not await is_reused(scanning, repo)
    monkeypatch.setattr("gctd.worker.scans.scan_run.host_platform", lambda: "linux/other")
    assert not await is_reused(scanning, repo)
