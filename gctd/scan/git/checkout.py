"""Checkouts: the files of one commit in a private folder, copied from a mirror that the workers of a host share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path

import attrs
import structlog

from gctd.domain.analysis import CommitFacts
from gctd.domain.remote.urls import RepoUrl, parse_repo_url, repo_id
from gctd.scan.cache.directory import DEFAULT_LIMITS, Cache, CacheLimits
from gctd.scan.cache.stdlib import StdlibBuildCache
from gctd.scan.errors import LimitExceeded, MirrorDamaged
from gctd.scan.git.commands import Git
from gctd.scan.git.commit import commit_facts
from gctd.scan.git.links import restore_links
from gctd.scan.git.mirrors import has_many_packs, tidy
from gctd.scan.git.refs import RemoteRef
from gctd.scan.git.submodules import ParseUrl, read_submodules
from gctd.scan.git.tree import CheckoutLimits, TreeReader
from gctd.scan.go.toolchain import Toolchain
from gctd.scan.isolation.files import Directory
from gctd.scan.isolation.locks import locked
from gctd.scan.isolation.output import OnLog, no_log
from gctd.scan.isolation.removal import remove

_UPKEEP_EVERY = 60.0
_TRIES = 3
_NESTING = 5
_SECOND = 10**9
"""Nanoseconds."""

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class Checkout:
    """A commit's files in `path`. They have one time, which is the commit's alone: go keeps one index of them for all jobs.

    `ref` is the requested name, or the name of the default branch if no name was given. `job` is the job's folder, `path` is
    inside. `go_caches` is the directory of Go's caches for this repository. No step of a scan sees either as a whole.
    `refused_links` are symbolic links that point out of the repository, left as plain files. `transferred` is False if the mirror
    had the commit. `facts` are the facts of the commit, None if it is not readable.
    """

    path: Path
    commit_sha: str
    ref: str
    repo_id: str
    job: Path
    go_caches: Path
    refused_links: tuple[str, ...]
    transferred: bool
    facts: CommitFacts | None = None


class Checkouts:
    """Checks out repositories. `parse_url` judges the addresses of submodules."""

    def __init__(
        self,
        cache_directory: Path,
        git: Git,
        limits: CheckoutLimits | None = None,
        *,
        cache_limits: CacheLimits = DEFAULT_LIMITS,
        parse_url: ParseUrl = parse_repo_url,
    ) -> None:
        self._cache = Cache(cache_directory, cache_limits)
        self._git = git
        self._limits = limits or CheckoutLimits()
        self._parse_url = parse_url
        self._kept_up = -_UPKEEP_EVERY

    def stdlib(self, toolchain: Toolchain) -> StdlibBuildCache:
        """Return the build cache of the standard library, as the first content of `go_caches`."""
        return StdlibBuildCache(self._cache.builds, toolchain)

    async def upkeep(self) -> None:
        """Remove the remains of jobs of killed workers, and the directories beyond the limits."""
        self._kept_up = time.monotonic()
        await self._cache.sweep()
        await self._cache.make_room()

    async def default_branch(self, url: RepoUrl, *, git_timeout: float = 600.0) -> str:
        """Return the branch of HEAD, empty if HEAD has no target. Raises GitError if the remote does not answer."""
        found = (await self._git.resolve_all(url, [None], seconds=git_timeout))[None]
        return found.name if isinstance(found, RemoteRef) else ""

    @asynccontextmanager
    async def checkout(
        self,
        url: RepoUrl,
        ref: str | None = None,
        *,
        commit: str | None = None,
        submodules: bool = False,
        git_timeout: float = 600.0,
        on_log: OnLog = no_log,
    ) -> AsyncIterator[Checkout]:
        """Provide the files of a branch, a tag or a commit (None: the default branch), until the end of the context.

        With `commit`, the files are from that commit, and `ref` is only its name, even if `ref` has moved.
        `git_timeout` seconds limit each command of git. `on_log` receives a line for each action.
        Raises GitError, LimitExceeded, ProcessError.
        """
        id_ = repo_id(url.canonical)
        if self._cache.is_short():
            await self._cache.make_room()
        async with self._cache.job(id_) as job, AsyncExitStack() as held:
            builds = await held.enter_async_context(self._cache.builds.using(id_))
            if commit is not None:
                remote = RemoteRef(name=ref or commit, full=None, commit_sha=commit)
            else:
                remote = await self._git.resolve(url, ref, seconds=git_timeout)
            on_log(f"{url.canonical}: {remote.name} is commit {remote.commit_sha}")
            placing = _Placing(self._git, self._cache, self._limits, self._parse_url, git_timeout, job, held, on_log)
            source = job / "src"
            commit = await placing.place(url, remote, source, submodules=submodules)
            if placing.facts is not None:
                await asyncio.to_thread(_set_times, source, commit, placing.facts)
            yield Checkout(
                path=source,
                commit_sha=commit,
                ref=remote.name,
                repo_id=id_,
                job=job,
                go_caches=builds,
                refused_links=tuple(placing.refused_links),
                transferred=placing.transferred,
                facts=placing.facts,
            )
        if time.monotonic() - self._kept_up > _UPKEEP_EVERY:
            await self.upkeep()


@attrs.frozen
class _Mirror:
    """A bare repository of the cache, and the lock that is held while it is changed, shared while it is read."""

    path: Path
    lock: Path


@attrs.define(eq=False)
class _Placing:
    """One checkout: of a repository, and of its submodules."""

    _git: Git
    _cache: Cache
    _limits: CheckoutLimits
    _parse_url: ParseUrl
    _git_timeout: float
    _job: Path
    _held: AsyncExitStack
    _on_log: OnLog
    _submodules: int = 0
    refused_links: list[str] = attrs.field(factory=list)
    transferred: bool = False
    facts: CommitFacts | None = None

    async def place(self, url: RepoUrl, ref: RemoteRef, target: Path, *, submodules: bool, nesting: int = 0) -> str:
        """Write the files of a commit to `target`; the commit's id."""
        name = f"{repo_id(url.canonical)}.git"
        mirror = _Mirror(await self._held.enter_async_context(self._cache.clones.using(name)), self._cache.clones.lock(name))
        try:
            commit, tree = await self._written(url, ref, mirror, target)
        except MirrorDamaged as damage:
            _log.warning("mirror is cloned again", url=url.canonical, reason=str(damage))
            async with locked(mirror.lock):
                await remove(mirror.path)
            await remove(target)
            commit, tree = await self._written(url, ref, mirror, target)
        if submodules and tree.has_modules_file:
            await self._place_submodules(url, tree, target, nesting)
        refused = await asyncio.to_thread(restore_links, target, tree.links)
        prefix = target.relative_to(self._job / "src").as_posix()
        self.refused_links += refused if prefix == "." else [f"{prefix}/{path}" for path in refused]
        return commit

    async def _written(self, url: RepoUrl, ref: RemoteRef, mirror: _Mirror, target: Path) -> tuple[str, TreeReader]:
        """Write the commit's files, after a fetch if the mirror does not have it. Return the commit's id and its tree."""
        commit = ref.commit_sha
        for _ in range(_TRIES):
            async with locked(mirror.lock, shared=True):
                if mirror.path.exists() and await self._git.has(mirror.path, commit):
                    written = await self._write(mirror.path, commit, target)
                    self._on_log(f"{commit} of {url.canonical} is checked out")
                    return commit, written
            self._on_log(f"fetching {commit} of {url.canonical}")
            commit = await self._fetched(url, ref, mirror)
        raise MirrorDamaged("what was fetched is not in the copy of the repository in the cache")

    async def _fetched(self, url: RepoUrl, ref: RemoteRef, mirror: _Mirror) -> str:
        """Bring the commit into the mirror, unless another job has just done so. Return its id.

        Every fetch leaves a pack. A mirror with many packs is rebuilt, so that it stays small and quick.
        """
        async with locked(mirror.lock):
            if mirror.path.exists() and await self._git.has(mirror.path, ref.commit_sha):
                return ref.commit_sha
            if has_many_packs(mirror.path):
                await remove(mirror.path)
            if mirror.path.exists():
                tidy(mirror.path)
            else:
                new = self._job / f"{mirror.path.name}.new"
                await self._git.make_mirror(new, sha256=len(ref.commit_sha) == 64)
                new.rename(mirror.path)
            self.transferred = True
            return await self._git.fetch(url, ref, mirror.path, seconds=self._git_timeout, on_log=self._on_log)

    async def _write(self, mirror: Path, commit: str, target: Path) -> TreeReader:
        tree, index = TreeReader(self._limits), self._job / "index"
        await self._git.list_tree(mirror, commit, tree.feed)
        _make_empty(target, index)
        await self._git.write_tree(mirror, commit, target, index)
        if target == self._job / "src":
            self.facts = commit_facts(await self._git.read_commit(mirror, commit))
        return tree

    async def _place_submodules(self, parent: RepoUrl, tree: TreeReader, target: Path, nesting: int) -> None:
        config = await self._git.read_config(target / ".gitmodules")
        for submodule in read_submodules(config, tree.submodules, parent, self._parse_url):
            self._submodules += 1
            if self._submodules > self._limits.submodules or nesting >= _NESTING:
                raise LimitExceeded(f"more than {self._limits.submodules} submodules, or nested more than {_NESTING} deep")
            ref = RemoteRef(name=submodule.commit, full=None, commit_sha=submodule.commit)
            await self.place(submodule.url, ref, target / submodule.path, submodules=True, nesting=nesting + 1)


def _set_times(root: Path, commit: str, facts: CommitFacts) -> None:
    """Give all files the second of their commit, and nanoseconds of its id.

    Go takes files with equal names, sizes and times for the same files, and an amended commit has the second of the first one.
    """
    seconds = int(datetime.fromisoformat(facts.at).timestamp())
    with Directory.open(root) as directory:
        directory.set_times(seconds * _SECOND + int(commit[:8], 16) % _SECOND)


def _make_empty(target: Path, index: Path) -> None:
    """Make the directory; git makes the index."""
    target.mkdir(parents=True, exist_ok=True)
    index.unlink(missing_ok=True)
