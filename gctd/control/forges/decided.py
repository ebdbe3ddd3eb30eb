"""The decision about a report to a forge: pure functions of the tasks of a commit and of the judgements on their analyses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from gctd.control.comparing.judging import AnalysisJudgement
from gctd.domain.delivery.commands import DecideReport
from gctd.domain.verdict import Result
from gctd.readmodel.views import TaskView

LONGEST_DESCRIPTION = 140
"""Characters of the description of a status."""


@attrs.frozen
class AnalysedCommit:
    """The ended tasks of a commit (None: a deleted one), and the names of all projects at the commit; empty if unknown.

    `refused` are the projects of the repository that cannot be analysed at its default branch.
    """

    tasks: Sequence[TaskView | None]
    projects: frozenset[str]
    refused: frozenset[str]

    @property
    def analysed(self) -> Sequence[TaskView]:
        """The completed tasks."""
        return [task for task in self.tasks if task is not None and task.status == "completed"]

    def missing(self) -> str | None:
        """Return the reason if an analysis is missing, as a description; None if there is a judgement for each one.

        A task fails if the commit removes its project: then no analysis of it is missing.
        """
        missed = [
            task
            for task in self.tasks
            if task is not None and task.status != "completed" and (not self.projects or task.project in self.projects)
        ]
        if missed:
            return _line(f"analysis failed: {missed[0].reason}")
        if not self.tasks:
            return "the repository has no project that can be analysed"
        return "a task was deleted" if None in self.tasks else None

    @property
    def not_judged(self) -> tuple[str, ...]:
        """The projects at the commit that have no task: the repository did not have them when the tasks were queued."""
        tasks = {task.project for task in self.tasks if task is not None}
        return tuple(sorted(self.projects - tasks - self.refused))


def decided(judged: Sequence[AnalysisJudgement], not_judged: tuple[str, ...], at: datetime) -> DecideReport:
    """Return the result of the judgements on all analyses of a commit. It names the projects without one."""
    failed = [one for one in judged if one.result is Result.FAILED]
    unknown = [one for one in judged if one.result is Result.UNKNOWN]
    if failed:
        checks = {check.name.value for one in failed for check in one.verdict.checks if check.passed is False}
        state, text = "failure", f"gate failed: {', '.join(sorted(checks))}"
    elif unknown:
        state, text = "error", f"not known: {unknown[0].reason}"
    else:
        state, text = "success", "gate passed"
    if not_judged:
        text = f"{text}; not judged: {', '.join(not_judged)}"
    return DecideReport(state=state, description=_line(text), at=at, not_judged=not_judged)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_DESCRIPTION else f"{line[: LONGEST_DESCRIPTION - 1]}…"
