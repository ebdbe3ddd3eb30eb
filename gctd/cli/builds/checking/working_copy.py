"""A working copy of git: its commit, its changes, and other commits of it as separate trees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import attrs

from gctd.control.comparing.baselines import Kind
from gctd.domain.errors import GctdError

_SECONDS = 120.0
_DEEPER = "fetch more of the history"
_REVISION = re.compile(r"HEAD|@|.*(?:[~^:]|@\{).*")
"""Names that no branch can have (gitrevisions(7)). Below `origin/`, HEAD is the default branch of the remote."""


class NotAWorkingCopy(GctdError):
    """The directory, or the named commit, is not one that git knows."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


@attrs.frozen(kw_only=True)
class BaseCommit:
    """The commit to compare with, and the way in which it was chosen."""

    commit: str
    kind: Kind


@attrs.frozen(kw_only=True)
class WorkingCopy:
    """A tree of sources.

    `commit` is its HEAD, empty outside of git. `changed`: the tree differs from the commit. `url` names the repository: its
    remote `origin` without a password, else its directory.
    """

    root: Path
    commit: str
    changed: bool
    url: str

    @classmethod
    def at(cls, directory: Path) -> WorkingCopy:
        """Return the working copy around a directory; outside of git it is the directory itself. Raises NotAWorkingCopy."""
        top = _top(directory)
        if top is None:
            return cls(root=directory.resolve(), commit="", changed=True, url=directory.resolve().as_uri())
        root = Path(top)
        commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") or ""
        changed = bool(_git(root, "status", "--porcelain", "--untracked-files=normal"))
        origin = _git(root, "config", "--get", "remote.origin.url")
        return cls(root=root, commit=commit, changed=changed, url=_without_user(origin) if origin else root.as_uri())

    def base(self, name: str) -> BaseCommit:
        """Return the base that a name means, by the rules of the gate.

        For a branch it is the commit at which this one left the branch, for any other name its commit. A commit is never
        compared with itself: the base of an unchanged tree is then its first parent. Raises NotAWorkingCopy.
        """
        if not self.commit:
            raise NotAWorkingCopy(f"{self.root} has no commit to compare with: use --baseline FILE, or --absolute")
        found, kind = self._named(name)
        if found == self.commit and not self.changed:
            parent = _git(self.root, "rev-parse", "--verify", "--quiet", "HEAD^1^{commit}")
            if parent is None:
                raise NotAWorkingCopy(
                    f"{self.commit[:12]} has no parent in this clone: fetch more of the history, or use --absolute"
                )
            return BaseCommit(commit=parent, kind=Kind.PARENT)
        return BaseCommit(commit=found, kind=kind)

    def _named(self, name: str) -> tuple[str, Kind]:
        if _REVISION.fullmatch(name):
            return self._commit(name), Kind.COMMIT
        for ref in (f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/remotes/origin/{name}"):
            if (tip := _git(self.root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")) is None:
                continue
            left = _git(self.root, "merge-base", tip, self.commit)
            if left is None:
                raise NotAWorkingCopy(
                    f"{name} and {self.commit[:12]} have no common commit in this clone: fetch more of the history"
                )
            return left, Kind.MERGE_BASE
        tag = _git(self.root, "rev-parse", "--verify", "--quiet", f"refs/tags/{name}^{{commit}}")
        if tag is not None:
            return tag, Kind.TAG
        return self._commit(name), Kind.COMMIT

    def _commit(self, name: str) -> str:
        commit = None if name.startswith("-") else _git(self.root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if commit is None:
            raise NotAWorkingCopy(f"{name} is no branch, tag or commit of this clone: fetch it first")
        return commit

    def put(self, commit: str, directory: Path) -> None:
        """Check a commit out in a new directory, with the submodules whose commits this working copy has.

        This working copy does not change. Raises NotAWorkingCopy.
        """
        _put(self.root, commit, directory)


def _put(root: Path, commit: str, directory: Path) -> None:
    for arguments in (
        ("clone", "--quiet", "--shared", "--no-checkout", "--", str(root), str(directory)),
        ("-C", str(directory), "checkout", "--quiet", "--detach", commit),
    ):
        done = _run(root, *arguments)
        if done.returncode:
            raise NotAWorkingCopy(f"{commit[:12]} cannot be checked out: {done.stderr.strip()[-300:]}")
    for path, wanted in _submodules(root, commit):
        there = root / path
        if (there / ".git").exists() and _git(there, "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}"):
            _put(there, wanted, directory / path)


def _submodules(root: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Return the path and the commit of each submodule of a commit."""
    for entry in (_git(root, "ls-tree", "-r", "-z", commit) or "").split("\0"):
        kind, _, path = entry.partition("\t")
        if kind.startswith("160000 "):
            yield path, kind.split()[2]


def _top(directory: Path) -> str | None:
    """Return the root of the working copy; None outside of git, and on a machine without git."""
    if shutil.which("git") is None:
        return None
    done = _run(directory, "rev-parse", "--show-toplevel")
    if done.returncode and "not a git repository" in done.stderr:
        return None
    return _output(directory, done)


def _git(directory: Path, *arguments: str) -> str | None:
    """Return the output of git, None if git finds nothing. Raises NotAWorkingCopy."""
    return _output(directory, _run(directory, *arguments))


def _output(directory: Path, done: subprocess.CompletedProcess[str]) -> str | None:
    if done.returncode not in (0, 1):  # git refuses a directory of another owner, for example
        raise NotAWorkingCopy(f"git does not answer for {directory.resolve()}: {' '.join(done.stderr.split())[:500]}")
    return None if done.returncode else done.stdout.strip()


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", *arguments],  # noqa: S607 - the git of the user
            cwd=directory,
            env=os.environ | {"LC_ALL": "C"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotAWorkingCopy(f"git does not answer for {directory.resolve()} within {_SECONDS:g} s") from error


def _without_user(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
