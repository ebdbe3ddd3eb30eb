"""Names inside a repository: refs (branch, tag or commit id) and projects (directories)."""

from __future__ import annotations

import re

from gctd.domain.errors import BadInput

MAX_REF = 255
MAX_SUBDIR = 1024

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
_NOT_IN_SUBDIR = re.compile(r"[\x00-\x1f\x7f\\]")
_BRANCH = "refs/heads/"
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def is_commit_id(ref: str) -> bool:
    """Whether a ref is a full commit id (SHA-1 or SHA-256)."""
    return _COMMIT.fullmatch(ref) is not None


def parse_ref(text: str, *, field: str = "ref") -> str:
    """Parse a branch, a tag (short or beginning with `refs/`), `HEAD`, or a full commit id.

    An id is returned in lower case, and a branch by its short name, unless that name would mean something else.
    The rules of `git check-ref-format --allow-onelevel` apply, plus: no '-' at the beginning, at most 255 bytes.
    Raises BadInput(field, reason).
    """
    if is_commit_id(text.lower()):
        return text.lower()
    problem = _ref_problem(text)
    if problem:
        raise BadInput(field, problem)
    branch = text.removeprefix(_BRANCH)
    return text if branch == "HEAD" or branch.startswith("refs/") or is_commit_id(branch.lower()) else branch


def _ref_problem(text: str) -> str | None:
    if not text:
        return "must not be empty"
    if _SURROGATE.search(text) or len(text.encode()) > MAX_REF:
        return f"not valid UTF-8 of at most {MAX_REF} bytes"
    if text.startswith("-"):
        return "begins with '-'"
    if _NOT_IN_REF.search(text):
        return "has a control character, a space or one of ~ ^ : ? * [ \\ in it"
    if ".." in text or "@{" in text or text == "@":
        return "has '..' or '@{' in it, or is '@'"
    if text.endswith("."):
        return "ends with '.'"
    for part in text.split("/"):
        if not part:
            return "has an empty part: a '/' at the beginning, at the end, or two together"
        if part.startswith(".") or part.endswith(".lock"):
            return "has a part that begins with '.' or ends with '.lock'"
    return None


def parse_subdir(text: str, *, field: str = "project") -> str:
    """Parse a project: the path of a directory in the repository, with forward slashes. `.` or an empty text is the root.

    Raises BadInput(field, reason) for a path that could leave the repository.
    """
    if text in ("", ".", "./"):
        return "."
    problem = _subdir_problem(text)
    if problem:
        raise BadInput(field, problem)
    return text.removeprefix("./").removesuffix("/")


def _subdir_problem(text: str) -> str | None:
    if _SURROGATE.search(text) or len(text.encode()) > MAX_SUBDIR:
        return f"not valid UTF-8 of at most {MAX_SUBDIR} bytes"
    if _NOT_IN_SUBDIR.search(text):
        return "has a control character or a backslash in it"
    if text.startswith("/"):
        return "must be relative to the repository's root"
    parts = text.removeprefix("./").removesuffix("/").split("/")
    if ".." in parts:
        return "has '..' in it"
    if "" in parts or "." in parts:
        return "has an empty part or '.' in it"
    return None
