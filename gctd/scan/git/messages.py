"""Errors of git as texts for the user: whether an error is final, and no secrets in the text."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from pathlib import Path

from gctd.scan.disk import MIB
from gctd.scan.errors import GitError, LimitExceeded, MirrorDamaged
from gctd.scan.isolation.process import Finished

_LONGEST = 500

_KNOWN: tuple[tuple[str, str, bool], ...] = (
    (
        r"could not read (Username|Password)|terminal prompts disabled|Authentication failed|returned error: 40[13]",
        "there is no such repository, or it is private and this tracker has no access to it",
        True,
    ),
    (
        r"[Rr]epository .*not found|does not appear to be a git repository|returned error: 404|is this a git repository\?",
        "there is no such repository",
        True,
    ),
    (
        r"returned error: 30[1278]|unable to update url base from redirection",
        "the repository has moved: use its new address",
        True,
    ),
    (r"detected dubious ownership", "the local repository belongs to another user than the worker", True),
    (r"couldn't find remote ref|not our ref|unadvertised object", "the commit, branch or tag is not in the repository", True),
    (r"transport '?(\S+?)'? not allowed", "the transport is not allowed", True),
    (
        r"fsck error|missing tree|bad tree|invalid index-pack output|unresolved delta",
        "the repository's objects are damaged",
        True,
    ),
    (r"dumb http transport does not support shallow", "the host has no git service, only plain files", True),
    (
        r"Permission denied \(|Host key verification failed",
        "the host refuses the worker's ssh key, or its host key is not known",
        True,
    ),
    (r"SSL certificate|certificate verify failed|TLS", "the host's certificate is not valid", False),
    (r"Could not resolve host", "the host cannot be resolved", False),
    (r"Failed to connect|Connection (refused|timed out|reset)|Operation too slow", "the host cannot be reached", False),
    (r"returned error: 429", "the host limits the rate of requests", False),
    (r"returned error: 5\d\d", "the host reports an internal error", False),
)


def explain(
    done: Finished, *, mirror: Path | None = None, secrets: Iterable[str] = (), limit: int | None = None
) -> GitError | LimitExceeded:
    """Return the error for a failed git command: MirrorDamaged if the output names `mirror`, the mirror it worked in."""
    said = redact(done.output_tail, secrets)
    if limit is not None and "File too large" in said:
        return LimitExceeded(f"the repository is larger than {limit // MIB} MiB")
    if mirror is not None and str(mirror) in said:
        return MirrorDamaged(
            f"the copy of the repository in the cache is damaged: {_detail(said.replace(str(mirror), 'mirror'))}"
        )
    if done.ended_by != "exit":
        return GitError(f"git {done.how()}")
    detail = _detail(said)
    for pattern, reason, permanent in _KNOWN:
        if re.search(pattern, said):
            return GitError(f"{reason} ({detail})" if detail else reason, permanent=permanent)
    return GitError(f"git {done.how()}: {detail}" if detail else f"git {done.how()}")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without user names and passwords in URLs, without the given secrets, without control characters."""
    text = conceal(text, secrets)
    return re.sub(r"[^\n\x20-\x7e\xa0-\U0010ffff]", "", text)


def conceal(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without user names, passwords and tokens in URLs, and without the given secrets."""
    for secret in secrets:
        for part in (secret, secret.partition(":")[2], base64.b64encode(secret.encode()).decode()):
            text = text.replace(part, "***") if part else text
    text = re.sub(r"(?i)(authorization:\s*\S+\s+)\S+", r"\1***", text)
    text = re.sub(r"(?i)([?&](?:\w*token|\w*key|\w*secret|password)=)[^&\s]+", r"\1***", text)
    return re.sub(r"//[^/@\s]+@", "//***@", text)


def _detail(said: str) -> str:
    """The line that says most: the last one of git itself, else the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(("fatal:", "error:"))]
    chosen = (own or lines)[:1]
    return chosen[0].removeprefix("fatal: ").removeprefix("error: ")[:_LONGEST] if chosen else ""
