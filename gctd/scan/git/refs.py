"""Refs of a remote repository: the names that one may mean, and the answer of `git ls-remote`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from gctd.domain.remote.refs import is_commit_id
from gctd.scan.errors import GitError


@attrs.frozen(kw_only=True)
class RemoteRef:
    """A ref of a remote repository: its short name, its full name (None for a commit id), and its commit."""

    name: str
    full: str | None
    commit_sha: str


def names_of(ref: str | None) -> list[str]:
    """Return the full names that a ref may mean, in the order of their precedence."""
    if ref is None or ref == "HEAD":
        return ["HEAD"]
    return [ref] if ref.startswith("refs/") else [f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/{ref}"]


def leads_to(ref: str | None, candidates: Sequence[str], found: Mapping[str, str], head: str | None) -> RemoteRef | GitError:
    """Select the existing one of the names that a ref may mean.

    `found` has the existing full names with their commits, `head` is the target of HEAD.
    """
    if ref is not None and not candidates:
        return RemoteRef(name=ref, full=None, commit_sha=ref)
    for name in candidates:
        commit = found.get(f"{name}^{{}}") or found.get(name)
        if commit is not None:
            full = head if head and name == "HEAD" else name
            short = full.removeprefix("refs/heads/") if ref is None or ref == "HEAD" else ref
            return RemoteRef(name=short, full=full, commit_sha=commit)
    if ref is None or ref == "HEAD":
        return GitError("the repository is empty: it has no default branch with a commit", permanent=True)
    hint = " (a commit id must be given in full)" if re.fullmatch(r"[0-9a-f]{7,63}", ref) else ""
    return GitError(f"no branch or tag {ref!r} in the repository{hint}", permanent=True)


def parse_refs(output: bytes) -> tuple[dict[str, str], str | None]:
    """Parse the output of `git ls-remote`. Return object ids by full name, and the target of HEAD."""
    found: dict[str, str] = {}
    head = None
    for line in output.decode(errors="replace").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            head = value.removeprefix("ref: ")
        elif is_commit_id(value):
            found[name] = value
    return found, head
