"""Scoring stored coverage profiles again, by another engine or a newer one: which test runs, and a task for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import attrs
import msgspec

from eventlog import Context, EventLog
from gctd.control.requests.new_tasks import MeasuredTask
from gctd.control.requests.policy import MOST_PROJECTS
from gctd.control.requests.tracker import TaskOutcome, Tracker
from gctd.domain.errors import Refused
from gctd.domain.remote.refs import parse_subdir
from gctd.domain.task import TASK
from gctd.domain.task.state import Task
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import AnalysisView


@attrs.frozen
class Rescoring:
    """Queues the tasks. `caught_up` waits until the read model has all that is in the log now."""

    _log: EventLog
    _queries: TrackerQueries
    _tracker: Tracker
    _caught_up: Callable[[], Awaitable[None]] = attrs.field(kw_only=True)

    async def rescore(
        self,
        repo_url: str,
        *,
        project: str | None = None,
        engine: str | None = None,
        all_history: bool = False,
        context: Context,
    ) -> Sequence[TaskOutcome]:
        """Score the test run of each project's latest analysis again, or of one project. `all_history`: score every stored run.

        A run that several analyses of a ref have is scored once, for the last one of them. Raises BadInput, NotFound. Raises
        Refused if no test run is stored.
        """
        known = await self._tracker.registered(repo_url)
        name = None if project is None else parse_subdir(project)
        await self._caught_up()
        found = await self._queries.measured_analyses(known.id, name, latest=not all_history)
        if not found:
            what = known.url if name is None else f"project {name!r} of {known.url}"
            raise Refused(
                f"{what} has no {'' if all_history else 'latest '}analysis that could be scored again: analyse it first"
            )
        last: dict[tuple[str, ...], AnalysisView] = {}
        for one in found:
            last.setdefault((one.project, one.rescored_from or one.task_id, one.ref), one)
        found = list(last.values())
        outcomes: list[TaskOutcome] = []
        for start in range(0, len(found), MOST_PROJECTS):
            measured = [await self._measured(analysis) for analysis in found[start : start + MOST_PROJECTS]]
            outcomes += await self._tracker.rescore(known, measured, engine=engine, context=_part(context, start))
        return outcomes

    async def _measured(self, stored: AnalysisView) -> MeasuredTask:
        commit = await self._log.last(TASK.aggregate(stored.task_id))
        assert commit is not None, "an analysis in the read model comes from the log"
        before: Task = commit.state
        assert before.analysis is not None, "a task with an analysis has completed"
        return MeasuredTask(task=before, analysis=before.analysis, sequence=stored.sequence)


def _part(context: Context, start: int) -> Context:
    """Return the context of one batch of several. Each batch has a separate key, so each takes effect once."""
    return context if start == 0 or context.key is None else msgspec.structs.replace(context, key=f"{context.key}+{start}")
