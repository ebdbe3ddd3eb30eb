"""Contents of a report to a forge: judgements, the address of a page, the text of a comment."""

from __future__ import annotations

import attrs

from gctd.broker.blobs import Blobs
from gctd.control.comparing.comments import comment_on
from gctd.control.comparing.judging import AnalysisJudgement, Judging
from gctd.control.comparing.pairs import AnalysisPair, compared
from gctd.domain.delivery.state import Delivery
from gctd.domain.errors import NotFound
from gctd.domain.options import threshold_of
from gctd.domain.verdict import Rules
from gctd.exports import markdown
from gctd.exports.dashboard import Dashboard
from gctd.readmodel.queries import TrackerQueries
from gctd.scan.hosts.links import Links

LONGEST_COMMENT = 60_000
"""Characters of a comment: forges take 65,536 and more."""


@attrs.frozen
class ReportContents:
    """Contents of reports, from the read model and the stored reports."""

    _queries: TrackerQueries
    _judging: Judging
    _blobs: Blobs
    _links: Links
    _dashboard: Dashboard

    async def judged(self, state: Delivery, task_id: str, *, store: bool) -> AnalysisJudgement:
        """Return the judgement on the analysis of a task; `store`: it becomes an event. Raises NotFound."""
        after = await self._queries.analysis_of_task(task_id)
        if after is None:
            raise NotFound(f"the analysis of {task_id} is gone")
        rules = Rules(threshold=threshold_of(after.flags))
        if store:
            return await self._judging.ask(after, state.base, rules, None)
        return await self._judging.look(after, state.base, rules)

    async def target(self, state: Delivery) -> str:
        """The page behind the status: the comparison of the first project with an analysis, else the first task."""
        for task_id in state.tasks:
            if await self._queries.analysis_of_task(task_id) is not None:
                judged = await self.judged(state, task_id, store=False)
                return self._dashboard.analysis(judged.after, judged.baseline.analysis, state.base)
        return self._dashboard.task(state.tasks[0]) if state.tasks else ""

    async def comment(self, state: Delivery) -> str:
        """The text of the comment; the same for the same state."""
        parts = list[str]()
        if state.state == "error":
            parts.append(f"### gctd: {state.description}")
        if state.not_judged:
            parts.append(_not_judged(state))
        for task_id in state.tasks:
            task = await self._queries.task(task_id)
            if task is not None and task.status == "completed":
                parts.append(await self._section(await self.judged(state, task_id, store=False), state.base))
        text = "\n\n".join(parts)
        return text if len(text) <= LONGEST_COMMENT else f"{text[:LONGEST_COMMENT]}\n\n(shortened)"

    async def _section(self, judged: AnalysisJudgement, base: str) -> str:
        """The part of the comment about one project."""

        def use(pair: AnalysisPair) -> str:
            return comment_on(pair, self._links, self._dashboard, judged, base)

        return await compared(self._blobs, judged.after, judged.baseline.analysis, use, judged.rules.threshold)


def _not_judged(state: Delivery) -> str:
    names = ", ".join(markdown.code(name) for name in state.not_judged[: markdown.ROWS])
    more = f" and {len(state.not_judged) - markdown.ROWS} more" if len(state.not_judged) > markdown.ROWS else ""
    add = markdown.code(f"gctd repo add {state.repo_url} --refresh")
    return f"Not judged: {names}{more}. The repository has no such project yet. {add} finds the projects of its default branch."
