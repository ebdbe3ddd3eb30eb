"""Rules for the requests of users."""

from __future__ import annotations

import attrs

from gctd.scan.policy import RepoPolicy

MOST_PROJECTS = 999
"""Limit of the tasks of one request: with the repository's own commit they fill an atomic batch."""


@attrs.frozen(kw_only=True)
class Policy:
    """Rules for the allowed repositories, and the defaults for new work."""

    repos: RepoPolicy = attrs.field(factory=RepoPolicy)
    engine: str = "native"
    engines: frozenset[str] = frozenset({"native"})
    max_attempts: int = 3
