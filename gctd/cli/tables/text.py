"""Formats of the tracker's values in a terminal; see `terminalkit.display` for all others."""

from __future__ import annotations


def score(value: float) -> str:
    """A CRAP value, two decimals."""
    return f"{value:.2f}"


def commit(sha: str | None) -> str:
    """The first twelve digits of a commit: enough to find it."""
    return (sha or "")[:12]
