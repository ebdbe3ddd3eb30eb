"""Relations of two commits in git's history, from a mirror of commits without trees and files for each repository."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from gctd.domain.remote.urls import RepoUrl
from gctd.scan.git.commands import Git
from gctd.scan.git.commit import parents
from gctd.scan.isolation.locks import locked

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
        tip = await self._git.resolve(url, branch, seconds=seconds)
        async with self._mirror(url, [tip.commit_sha, commit], seconds) as mirror:
            return await self._git.merge_base(mirror, tip.commit_sha, commit)

    async def first_parent(self, url: RepoUrl, commit: str, *, seconds: float) -> str | None:
        """Return the first parent of a commit; None for a root commit. Errors as in `merge_base`."""
        async with self._mirror(url, [commit], seconds) as mirror:
            return next(iter(parents(await self._git.read_commit(mirror, commit))), None)

    @asynccontextmanager
    async def _mirror(self, url: RepoUrl, commits: Sequence[str], seconds: float) -> AsyncIterator[Path]:
        """Provide a mirror with these commits and all their ancestors. No other process changes it during the context."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._directory / f"{sha256(url.clone_url.encode()).hexdigest()[:32]}.git"
        async with locked(path.with_suffix(".lock")):
            if not (path / "HEAD").exists():
                await self._git.make_mirror(path, sha256=any(len(commit) == _SHA256 for commit in commits))
            for commit in commits:
                if not await self._git.has(path, commit):
                    await self._git.fetch_history(url, commit, path, seconds=seconds)
            yield path
