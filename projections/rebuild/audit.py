"""Looking over a log from its first commit on: whether each is bound to the one before it, and its state is what the events say.

A read model is made from the states in commits, so a replay finds nothing wrong with a state that contradicts the events.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import attrs

from eventlog import Commit, EventLog, EventLogError
from eventlog.admin.copy_check import contradiction
from eventlog.support.chain import beginning, fingerprints, rolled, text_of
from projections.model import ReadModel
from projections.projector.continuity import check_contiguous
from projections.store import Mark

KEPT = 100_000
"""Aggregates whose last commit is kept for the next one; the last commits of others are looked up."""
MOST = 100
"""Findings after which an audit names no more."""
_BATCH = 5000


@attrs.frozen(kw_only=True)
class LogFault:
    """The fault of one commit: later ones of its aggregate are not looked at."""

    sequence: int
    subject: str
    problem: str

    def __str__(self) -> str:
        return f"sequence {self.sequence}, {self.subject}: {self.problem}"


@attrs.frozen(kw_only=True)
class Audit:
    """Result of an audit up to `sequence`: the findings in order, `digest` as in `Checkpoint`, and where marks differ.

    `diverged` are the sequences between which the log is not the one that the marks were made from.
    """

    sequence: int
    findings: Sequence[LogFault]
    digest: str
    diverged: tuple[int, int] | None

    @property
    def problems(self) -> Sequence[str]:
        """The faults, a line each; none if the log is sound."""
        found = [str(finding) for finding in self.findings]
        if self.diverged is not None:
            begin, end = self.diverged
            found.append(f"the log is not the one that the tables were made from: it differs between sequence {begin} and {end}")
        return found


async def audit(event_log: EventLog, model: ReadModel, *, until: int, marks: Sequence[Mark] = ()) -> Audit:
    """Look over the log up to sequence `until`, in threads, so that the event loop is not blocked.

    `marks` come from the tables: they may end before `until`. Raises LogDamaged, Unavailable.
    """
    looking = _Looking(event_log, model)
    digest, after, diverged = beginning(model.stream), 0, None
    known = {mark.sequence: mark for mark in marks}
    agreed = 0
    lists: Any = event_log.follow(after=0, until=until, batch=_BATCH)
    async with aclosing(lists):
        async for commits in lists:
            check_contiguous(commits, after)
            made, begin = await asyncio.to_thread(fingerprints, commits), 0
            for border in [at for at in range(after + 1, commits[-1].sequence + 1) if at in known] if known else ():
                digest = rolled(digest, made[begin : border - after])
                begin = border - after
                if text_of(digest) == known[border].digest:
                    agreed = border
                elif diverged is None:
                    diverged = (agreed + 1, border)
            digest = rolled(digest, made[begin:])
            after = commits[-1].sequence
            await looking.at(commits)
    return Audit(sequence=after, findings=looking.findings, digest=text_of(digest), diverged=diverged)


class _Looking:
    """The last commits of aggregates, and the findings."""

    def __init__(self, event_log: EventLog, model: ReadModel) -> None:
        self.findings: list[LogFault] = []
        self._log = event_log
        self._model = model
        self._last: OrderedDict[str, Commit] = OrderedDict()
        self._damaged: set[str] = set()

    async def at(self, commits: Sequence[Commit]) -> None:
        """Look at commits, which follow each other."""
        missing = await asyncio.to_thread(self._look, commits)
        while missing is not None:  # the commit before one is not kept any more
            commit = commits[missing]
            before = await self._log.at(commit.guard or 0)
            if before is None:
                self._found(commit, f"the commit before it, at sequence {commit.guard}, cannot be read")
            else:
                self._last[commit.subject] = before
            commits = commits[missing:]
            missing = await asyncio.to_thread(self._look, commits)
        while len(self._last) > KEPT:
            self._last.popitem(last=False)

    def _look(self, commits: Sequence[Commit]) -> int | None:
        """Look at commits up to one whose predecessor has to be read: its index."""
        for index, commit in enumerate(commits):
            if commit.subject in self._damaged:
                continue
            guard, before = commit.guard, self._last.get(commit.subject)
            if guard is None:
                self._found(commit, "it was published without a guard, past the event log")
                continue
            if guard and before is None:
                return index
            problem = self._problem(commit, guard, before)
            if problem:
                self._found(commit, problem)
                continue
            self._last[commit.subject] = commit
            self._last.move_to_end(commit.subject)
        return None

    def _problem(self, commit: Commit, guard: int, before: Commit | None) -> str:
        if (0 if before is None else before.sequence) != guard:
            return f"it was stored after sequence {guard}, and the commit before it is {0 if before is None else before.sequence}"
        try:
            if commit.prev is not None and (before is None or commit.prev != before.digest):
                return f"it was decided on another commit than the one at sequence {guard}"
        except EventLogError as error:
            return str(error)
        fold = self._model.folds.get(commit.category)
        return "" if fold is None else contradiction(commit, before, fold)

    def _found(self, commit: Commit, problem: str) -> None:
        self._damaged.add(commit.subject)
        if len(self.findings) < MOST:
            self.findings.append(LogFault(sequence=commit.sequence, subject=commit.subject, problem=problem))
