"""Checkouts: the files of one commit in a folder of its own, by way of a mirror that the workers of a host share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import structlog

from gctd.domain.urls import RepoUrl, parse_repo_url, repo_id
from gctd.scan.cache import Cache, RepoCache
from gctd.scan.errors import LimitExceeded, MirrorDamaged
from gctd.scan.git import Git, RemoteRef
from gctd.scan.links import restore_links
from gctd.scan.locks import locked
from gctd.scan.process import MIB
from gctd.scan.removal import remove
from gctd.scan.submodules import ParseUrl, read_submodules
from gctd.scan.tree import TreeReader

_ROOM_EVERY = 60.0
_NESTING = 5

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class CheckoutLimits:
    """The largest repository that is taken: files, their bytes together and each, directories on the way to one, submodules.

    `cache_bytes` is what the caches of all repositories may take up before the one used longest ago goes.
    """

    files: int = 200_000
    total_bytes: int = 4096 * MIB
    file_bytes: int = 512 * MIB
    depth: int = 100
    submodules: int = 50
    cache_bytes: int = 20_480 * MIB


@attrs.frozen(kw_only=True)
class Checkout:
    """A commit's files in `path`.

    `ref` is the name it was found by (that of the default branch where none was asked for). `job` is the job's folder, for HOME
    and TMPDIR, `go_cache` a directory for what Go builds and downloads for this repository; `path` is inside `job`.
    `refused_links` are symbolic links that lead out of the repository, left as plain files. `transferred` is False where the
    mirror had the commit.
    """

    path: Path
    commit_sha: str
    ref: str
    repo_id: str
    job: Path
    go_cache: Path
    refused_links: tuple[str, ...]
    transferred: bool


class Checkouts:
    """Checks out repositories. `parse_url` judges the addresses of submodules."""

    def __init__(
        self,
        cache_directory: Path,
        git: Git,
        limits: CheckoutLimits = CheckoutLimits(),
        *,
        parse_url: ParseUrl = parse_repo_url,
    ) -> None:
        self._cache = Cache(cache_directory)
        self._git = git
        self._limits = limits
        self._parse_url = parse_url
        self._made_room = 0.0

    async def sweep(self) -> int:
        """Remove what jobs left behind whose worker was killed; how many folders. For the start of a worker."""
        return await self._cache.sweep()

    @asynccontextmanager
    async def checkout(
        self, url: RepoUrl, ref: str | None = None, *, submodules: bool = False, git_timeout: float = 600.0
    ) -> AsyncIterator[Checkout]:
        """The files of a branch, a tag or a commit (None: the default branch), until the end of the context.

        `git_timeout` seconds hold for each command of git. Raises GitError, LimitExceeded, ProcessError.
        """
        id_ = repo_id(url.canonical)
        async with self._cache.job(id_) as job, AsyncExitStack() as held:
            remote = await self._git.resolve(url, ref, seconds=git_timeout)
            placing = _Placing(self._git, self._cache, self._limits, self._parse_url, git_timeout, job, held)
            source = job / "src"
            commit = await placing.place(url, remote, source, submodules=submodules)
            yield Checkout(
                path=source,
                commit_sha=commit,
                ref=remote.name,
                repo_id=id_,
                job=job,
                go_cache=self._cache.of(id_).go,
                refused_links=tuple(placing.refused_links),
                transferred=placing.transferred,
            )
        await self._make_room()

    async def _make_room(self) -> None:
        if time.monotonic() - self._made_room > _ROOM_EVERY:
            self._made_room = time.monotonic()
            await self._cache.make_room(self._limits.cache_bytes)


class _Placing:
    """One checkout: of a repository, and of its submodules."""

    def __init__(
        self,
        git: Git,
        cache: Cache,
        limits: CheckoutLimits,
        parse_url: ParseUrl,
        git_timeout: float,
        job: Path,
        held: AsyncExitStack,
    ) -> None:
        self._git = git
        self._cache = cache
        self._limits = limits
        self._parse_url = parse_url
        self._git_timeout = git_timeout
        self._job = job
        self._held = held
        self._submodules = 0
        self.refused_links: list[str] = []
        self.transferred = False

    async def place(self, url: RepoUrl, ref: RemoteRef, target: Path, *, submodules: bool, nesting: int = 0) -> str:
        """Write the files of a commit to `target`; the commit's id."""
        places = await self._held.enter_async_context(self._cache.using(repo_id(url.canonical)))
        try:
            commit = await self._fetched(url, ref, places)
            tree = await self._write(places, commit, target)
        except MirrorDamaged as damage:
            _log.warning("mirror is made anew", url=url.canonical, reason=str(damage))
            async with locked(places.lock):
                await remove(places.mirror)
            await remove(target)
            commit = await self._fetched(url, ref, places)
            tree = await self._write(places, commit, target)
        if submodules and tree.modules_file is not None:
            await self._place_submodules(url, tree, target, nesting)
        refused = await asyncio.to_thread(restore_links, target, [link.path for link in tree.links])
        prefix = target.relative_to(self._job / "src").as_posix()
        self.refused_links += refused if prefix == "." else [f"{prefix}/{path}" for path in refused]
        return commit

    async def _fetched(self, url: RepoUrl, ref: RemoteRef, places: RepoCache) -> str:
        """Bring the commit into the mirror, unless it is there; its id."""
        async with locked(places.lock, shared=True):
            if places.mirror.exists() and await self._git.has(places.mirror, ref.commit_sha):
                return ref.commit_sha
        async with locked(places.lock):
            if not places.mirror.exists():
                new = self._job / f"{places.mirror.name}.new"
                await self._git.make_mirror(new, sha256=len(ref.commit_sha) == 64)
                new.rename(places.mirror)
            elif await self._git.has(places.mirror, ref.commit_sha):  # another job has just brought it
                return ref.commit_sha
            else:
                _tidy(places.mirror)
            self.transferred = True
            return await self._git.fetch(url, ref, places.mirror, seconds=self._git_timeout)

    async def _write(self, places: RepoCache, commit: str, target: Path) -> TreeReader:
        limits, index = self._limits, self._job / "index"
        tree = TreeReader(files=limits.files, total=limits.total_bytes, largest=limits.file_bytes, depth=limits.depth)
        async with locked(places.lock, shared=True):
            await self._git.list_tree(places.mirror, commit, tree.feed)
            _make_empty(target, index)
            await self._git.write_tree(places.mirror, commit, target, index)
        return tree

    async def _place_submodules(self, parent: RepoUrl, tree: TreeReader, target: Path, nesting: int) -> None:
        config = await self._git.read_config(target / ".gitmodules")
        commits = {entry.path.decode(errors="replace"): entry.oid for entry in tree.submodules}
        for submodule in read_submodules(config, commits, parent, self._parse_url):
            self._submodules += 1
            if self._submodules > self._limits.submodules or nesting >= _NESTING:
                raise LimitExceeded(f"more than {self._limits.submodules} submodules, or nested more than {_NESTING} deep")
            ref = RemoteRef(name=submodule.commit, full=None, commit_sha=submodule.commit)
            await self.place(submodule.url, ref, target / submodule.path, submodules=True, nesting=nesting + 1)


def _make_empty(target: Path, index: Path) -> None:
    """Make the directory; git makes the index."""
    target.mkdir(parents=True, exist_ok=True)
    index.unlink(missing_ok=True)


def _tidy(mirror: Path) -> None:
    """Remove what a git that was killed has left in a mirror; nothing else may be at work in it."""
    for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*"):
        for path in mirror.glob(pattern):
            path.unlink(missing_ok=True)
