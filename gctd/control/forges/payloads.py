"""Deliveries of webhooks: which forge signed one, and which commit it is about.

Rules: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries and
https://docs.gitlab.com/user/project/integrations/webhooks/. A payload is a hint: no address in it is ever asked.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Any

import attrs
import msgspec

from gctd.control.forges.configured import Forge
from gctd.domain.errors import BadInput

_SHA = re.compile(r"[0-9a-f]{40}")
_DELETED = "0" * 40
_PULL_ACTIONS = frozenset({"opened", "synchronize", "reopened", "open", "reopen", "update"})
_LONGEST = 1024


@attrs.frozen(kw_only=True)
class PushedCommit:
    """A commit that a delivery is about; `path` is the path of the repository at the forge. See `DeliveryReceived`."""

    path: str
    ref: str
    commit_sha: str
    base: str
    number: int | None = None


def signed_by(forges: Iterable[Forge], body: bytes, *, signature: str | None, token: str | None) -> list[Forge]:
    """Return the forges with a secret that signed this body (GitHub), or is this token (GitLab), compared in constant time."""
    found = []
    for forge in forges:
        matches = False
        for secret in forge.secrets:
            if forge.kind == "github":
                wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
                matches |= hmac.compare_digest(wanted.encode(), (signature or "").encode(errors="surrogateescape"))
            else:
                matches |= hmac.compare_digest(secret.encode(), (token or "").encode(errors="surrogateescape"))
        if matches:
            found.append(forge)
    return found


def pushed_commit(kind: str, event: str, body: bytes) -> PushedCommit | None:
    """Return the commit that a delivery asks to analyse; None if it is about something else. Raises BadInput."""
    try:
        payload = msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise BadInput("body", "it is not JSON") from None
    read = {
        ("github", "push"): _github_push,
        ("github", "pull_request"): _github_pull,
        ("gitlab", "Push Hook"): _gitlab_push,
        ("gitlab", "Merge Request Hook"): _gitlab_merge,
    }.get((kind, event))
    if read is None:
        return None
    try:
        found = read(payload)
    except (KeyError, TypeError, AttributeError):
        raise BadInput("body", f"it is not a {event} event") from None
    if found is not None:
        _check(found)
    return found


def _check(found: PushedCommit) -> None:
    texts: list[Any] = [found.path, found.ref, found.commit_sha, found.base]
    if not all(isinstance(text, str) and len(text) <= _LONGEST for text in texts) or not _SHA.fullmatch(found.commit_sha):
        raise BadInput("body", "it does not name a commit")
    number: Any = found.number
    if number is not None and not (isinstance(number, int) and 0 < number < 2**53):
        raise BadInput("body", "it does not name a pull request")


def _pushed(path: str, ref: str, before: str, after: str, default: str) -> PushedCommit | None:
    branch = ref.removeprefix("refs/heads/")
    if branch == ref or after == _DELETED:
        return None  # a tag, or a branch that was deleted
    return PushedCommit(path=path, ref=branch, commit_sha=after, base=default if before == _DELETED else before)


def _github_push(payload: Any) -> PushedCommit | None:
    repository = payload["repository"]
    return _pushed(repository["full_name"], payload["ref"], payload["before"], payload["after"], repository["default_branch"])


def _github_pull(payload: Any) -> PushedCommit | None:
    # An edit changed the title or the text, unless it changed the branch that the verdict is about.
    if payload["action"] not in _PULL_ACTIONS and not (payload["action"] == "edited" and "base" in payload.get("changes", ())):
        return None
    pull = payload["pull_request"]
    return PushedCommit(
        path=payload["repository"]["full_name"],
        ref=pull["head"]["ref"],
        commit_sha=pull["head"]["sha"],
        base=pull["base"]["ref"],
        number=payload["number"],
    )


def _gitlab_push(payload: Any) -> PushedCommit | None:
    project = payload["project"]
    return _pushed(project["path_with_namespace"], payload["ref"], payload["before"], payload["after"], project["default_branch"])


def _gitlab_merge(payload: Any) -> PushedCommit | None:
    merge = payload["object_attributes"]
    # An update without `oldrev` changed no commit: only the title or a label, unless it changed the target branch.
    is_other = "oldrev" in merge or "target_branch" in payload.get("changes", ())
    if merge["action"] not in _PULL_ACTIONS or (merge["action"] == "update" and not is_other):
        return None
    return PushedCommit(
        path=payload["project"]["path_with_namespace"],
        ref=merge["source_branch"],
        commit_sha=merge["last_commit"]["id"],
        base=merge["target_branch"],
        number=merge["iid"],
    )
