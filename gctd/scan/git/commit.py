"""The facts of a commit, read from its object."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from gctd.domain.analysis import CommitFacts

_AUTHOR = re.compile(rb"author (.*?) ?<[^<>]*> (\d{1,12}) ([+-])(\d{2})(\d{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_LONGEST = 200
"""Characters of an author's name or a subject."""


def commit_facts(body: bytes) -> CommitFacts | None:
    """Return the facts in a commit object, as `git cat-file commit` prints it; None if it has no readable author."""
    head, _, message = body.partition(b"\n\n")
    lines = head.split(b"\n")
    author = next((found for line in lines if (found := _AUTHOR.fullmatch(line))), None)
    if author is None:
        return None
    name, seconds, sign, hours, minutes = author.groups()
    zone = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == b"-" else 1)
    try:
        at = datetime.fromtimestamp(int(seconds), timezone(zone)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return CommitFacts(
        author=_text(name),
        at=at.isoformat().replace("+00:00", "Z"),
        subject=_text(message.partition(b"\n")[0]),
        parents=parents(body),
    )


def parents(body: bytes) -> tuple[str, ...]:
    """Return the ids of the parents in a commit object, the first parent first."""
    head, _, _ = body.partition(b"\n\n")
    return tuple(line[7:].decode("ascii", "replace") for line in head.split(b"\n") if line.startswith(b"parent "))


def _text(text: bytes) -> str:
    return _CONTROL.sub(" ", text.decode("utf-8", "replace")).strip()[:_LONGEST]
