"""Relations of two commits in git's history, from a mirror of commits without trees and files for each repository."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import structlog

from gctd.domain.remote.urls import RepoUrl
from gctd.scan.errors import MirrorDamaged
from gctd.scan.git.commands import Git
from gctd.scan.git.commit import parents
from gctd.scan.git.mirrors import has_many_packs, tidy
from gctd.scan.isolation.locks import locked
from gctd.scan.isolation.removal import remove

_log = structlog.get_logger(__name__)

T = TypeVar("T")

DIRECTORY = "history"
"""Folder of the mirrors in the cache directory."""
_SHA256 = 64
"""Digits of a commit id of a repository that uses SHA-256."""


class Histories:
    """The mirrors below a directory, one for each repository. Errors: the errors of git."""

    def __init__(self, directory: Path, git: Git) -> None:
        self._directory = directory / DIRECTORY
        self._git = git

    async def merge_base(self, url: RepoUrl, branch: str, commit: str, *, seconds: float) -> str | None:
        """Return the last common commit of a branch of the remote and a commit; None if they have none.

        `seconds` bound each question to the remote. Raises GitError if the remote lacks one of them.
        """
        tip = (await self._git.resolve(url, branch, seconds=seconds)).commit_sha
        return await self._asked(url, [tip, commit], seconds, lambda mirror: self._git.merge_base(mirror, tip, commit))

    async def first_parent(self, url: RepoUrl, commit: str, *, seconds: float) -> str | None:
        """Return the first parent of a commit; None for a root commit. Errors as in `merge_base`."""
        body = await self._asked(url, [commit], seconds, lambda mirror: self._git.read_commit(mirror, commit))
        return next(iter(parents(body)), None)

    async def _asked(self, url: RepoUrl, commits: Sequence[str], seconds: float, question: Callable[[Path], Awaitable[T]]) -> T:
        """Return the answer of a mirror with these commits and all their ancestors. A damaged mirror is replaced."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._directory / f"{sha256(url.clone_url.encode()).hexdigest()[:32]}.git"
        async with locked(path.with_suffix(".lock")):
            try:
                await self._fill(path, url, commits, seconds)
                return await question(path)
            except MirrorDamaged as damage:
                _log.warning("mirror is cloned again", url=url.canonical, reason=str(damage))
                await remove(path)
                await self._fill(path, url, commits, seconds)
                return await question(path)

    async def _fill(self, path: Path, url: RepoUrl, commits: Sequence[str], seconds: float) -> None:
        if not (path / "HEAD").exists():
            await self._git.make_mirror(path, sha256=any(len(commit) == _SHA256 for commit in commits))
        missing = [commit for commit in commits if not await self._git.has(path, commit)]
        if not missing:
            return
        tidy(path)
        if has_many_packs(path):
            await self._git.repack(path)
        for commit in missing:
            await self._git.fetch_history(url, commit, path, seconds=seconds)
