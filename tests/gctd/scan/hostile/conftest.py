"""A worker that hostile repositories meet: real steps, in each kind of sandbox, with a proxy that leads nowhere."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
import pytest_asyncio

from gctd.broker.blobs import MemoryBlobs
from gctd.domain.analysis import Analysis
from gctd.domain.remote.urls import parse_repo_url, repo_id
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task.state import Task, TaskStatus
from gctd.scan.cache.directory import Cache
from gctd.scan.isolation.sandbox import Sandbox, Wanted, candidates
from gctd.settings import Settings
from gctd.worker.scans.opening import open_work
from gctd.worker.scans.scanning import Scanning
from tests.support.tracker import go_library
from tests.support.tracker import go_repo as gorepo

DEAD = "http://127.0.0.1:9"
KINDS = ["namespaces", "bubblewrap"]


@attrs.define
class Host:
    """The worker: the content of its cache, and its lines in the log of the last scan."""

    cache: Path
    scanning: Scanning
    blobs: MemoryBlobs
    log: list[str] = attrs.field(factory=list)

    async def scan(self, repo: gorepo.GoRepo, test_args: str | None = None, engine: str = "native") -> Analysis:
        """Scan the root of a repository, as for a task."""
        self.log.clear()

        async def on_stage(stage: str, progress: object = None) -> None:
            """Not of interest."""

        wanted = attrs.evolve(task(repo, ProjectConfig(test_args=test_args)), engine=engine)
        return await self.scanning.scan(wanted, on_stage, self.log.append)

    async def profile(self, analysis: Analysis) -> str:
        """The coverage profile that was stored."""
        assert analysis.profile is not None
        return (await self.blobs.get(analysis.profile.digest)).decode()

    @property
    def builds(self) -> Path:
        return self.cache / "builds"

    def of(self, repo: gorepo.GoRepo) -> Path:
        """The caches that Go has for a repository."""
        return self.builds / _id(repo)


def _id(repo: gorepo.GoRepo) -> str:
    return _id_at(repo.path)


def _id_at(place: Path) -> str:
    return repo_id(parse_repo_url(place.as_uri(), allow_local=True).canonical)


def _lasting(cache: Path) -> Sequence[Path]:
    """The paths of the repositories whose caches last."""
    return [cache.parent / f"{cache.name}-repositories" / name for name in ("hostile", "good")]


def task(repo: gorepo.GoRepo, config: ProjectConfig) -> Task:
    """A task as the queue would give it."""
    now = datetime.now(UTC)
    return Task(
        id="task-1",
        repo_id=_id(repo),
        repo_url=repo.url,
        clone_url=repo.url,
        project=".",
        ref="",
        status=TaskStatus.RUNNING,
        engine="native",
        max_attempts=1,
        config=config,
        created_at=now,
        updated_at=now,
        waiting_since=now,
    )


@pytest.fixture(params=KINDS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return sandbox_of(request.param)


def sandbox_of(kind: str) -> Sandbox:
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("there is no bwrap on this machine")
    return next(sandbox for sandbox in candidates() if sandbox.kind == kind)


@pytest.fixture(scope="session")
def hostile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker's cache directory with the build of Go's library, of this process of the tests alone."""
    cache = tmp_path_factory.mktemp("hostile")
    asyncio.run(go_library.give(cache))
    return cache


@pytest.fixture
def places(hostile_cache: Path) -> Iterator[Sequence[Path]]:
    """The paths of two repositories whose caches last over the tests, with Go's library and the build of most of their packages.

    A test of the caches themselves has its repository, and thus its caches, elsewhere.
    """
    yield (places := _lasting(hostile_cache))
    shutil.rmtree(places[0].parent)


@pytest.fixture
def place(places: Sequence[Path]) -> Path:
    """One of them."""
    return places[0]


@pytest_asyncio.fixture
async def host(hostile_cache: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> AsyncIterator[Host]:
    """The worker with a sandbox of mounts, of the `kind` that the module of the test names."""
    sandbox = sandbox_of(kind)
    monkeypatch.setattr("gctd.scan.isolation.sandbox.candidates", lambda: [sandbox])
    async with host_of(hostile_cache, monkeypatch, "require") as host:
        yield host


@asynccontextmanager
async def host_of(cache: Path, monkeypatch: pytest.MonkeyPatch, wanted: Wanted) -> AsyncIterator[Host]:
    """A worker. At the end, the clones of repositories are removed, and their caches but the lasting ones."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, DEAD)
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("GOPROXY", "off")
    settings = Settings(cache_directory=cache, allow_local=True, git_metadata=False, sandbox=wanted)
    blobs = MemoryBlobs()
    yield Host(cache, await open_work(settings, blobs), blobs)
    places, lasting = Cache(cache), tuple(map(_id_at, _lasting(cache)))
    for kind in (places.clones, places.builds):
        for item in await kind.items():
            if kind is places.clones or not item.name.startswith(("std-", *lasting)):
                await item.forget()


def attacking(directory: Path, body: str, *imports: str) -> gorepo.GoRepo:
    """A repository whose only test does this."""
    files = {"go.mod": gorepo.module("example.com/hostile"), **gorepo.with_test("hostile", body, *imports)}
    return gorepo.make(directory, files=files)
