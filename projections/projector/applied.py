"""Reports of applied commits: each commit once and in order, whichever process has applied it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import structlog

from eventlog import Commit
from projections.projector.writer import INLINE

log = structlog.get_logger(__name__)

OnApplied = Callable[[Sequence[Commit]], None]
"""Called in the event loop with commits that have become visible."""


class AppliedReports:
    """Calls `on_applied` after each transaction. Commits that a restarted projection applies a second time are left out."""

    def __init__(self, on_applied: OnApplied | None) -> None:
        self._on_applied = on_applied
        self._reported: int | None = None
        self._history: int | None = None

    def begin_after(self, sequence: int) -> None:
        """All commits after this sequence are reported. By default, all that the tables have at the beginning is history."""
        self._history = sequence

    def reached(self, highest: int) -> int:
        """Return the sequence up to which all is reported. At the beginning it is the end of the history.

        `highest` is the highest sequence that a projection has applied.
        """
        if self._reported is None:
            self._reported = highest if self._history is None else min(highest, self._history)
        return self._reported

    def skip_to(self, sequence: int) -> None:
        """All commits up to this sequence count as reported."""
        self._reported = sequence

    def report(self, commits: Sequence[Commit]) -> None:
        """Report the commits of a transaction."""
        if len(commits) <= INLINE and log.is_enabled_for(logging.DEBUG):
            for commit in commits:
                trace = commit.trace
                log.debug("commit applied", sequence=commit.sequence, subject=commit.subject, trace_id=trace and trace.trace_id)
        reported = self._reported or 0
        if commits[-1].sequence > reported:
            new = commits if commits[0].sequence > reported else [c for c in commits if c.sequence > reported]
            self._reported = commits[-1].sequence
            if self._on_applied is not None:
                self._on_applied(new)
