"""Looking over a log from its first commit on: whether each is bound to the one before it, and its state is what the events say.

A read model is made from the states in commits, so a replay finds nothing wrong with a state that contradicts the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import attrs

from eventlog import EventLog
from eventlog.admin.scrub import CommitChecker, Damage
from eventlog.support.chain import beginning, fingerprints, rolled, text_of
from projections.model import ReadModel
from projections.projector.continuity import check_contiguous
from projections.store import Mark

MOST = 100
"""Findings after which an audit names no more."""
_BATCH = 1000


@attrs.frozen(kw_only=True)
class Audit:
    """Result of an audit up to `sequence`: the findings in order, `digest` as in `Checkpoint`, and where marks differ.

    `diverged` are the sequences between which the log is not the one that the marks were made from.
    """

    sequence: int
    findings: Sequence[Damage]
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
    """Look over the log up to sequence `until`.

    `marks` come from the tables: they may end before `until`. Raises LogDamaged, Unavailable.
    """
    checker, findings = CommitChecker(event_log.at, model.folds), list[Damage]()
    digest, after, diverged = beginning(model.stream), 0, None
    known = {mark.sequence: mark for mark in marks}
    agreed = 0
    lists: Any = event_log.follow(after=0, until=until, batch=_BATCH)
    async with aclosing(lists):
        async for commits in lists:
            check_contiguous(commits, after)
            made, begin = fingerprints(commits), 0
            for border in [at for at in range(after + 1, commits[-1].sequence + 1) if at in known] if known else ():
                digest = rolled(digest, made[begin : border - after])
                begin = border - after
                if text_of(digest) == known[border].digest:
                    agreed = border
                elif diverged is None:
                    diverged = (agreed + 1, border)
            digest = rolled(digest, made[begin:])
            after = commits[-1].sequence
            problems = await checker.problems(commits, made)
            findings += [Damage(one.sequence, one.subject, problems[one.sequence]) for one in commits if one.sequence in problems]
    return Audit(sequence=after, findings=findings[:MOST], digest=text_of(digest), diverged=diverged)
