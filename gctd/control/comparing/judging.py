"""Verdicts: the gate's judgement of an analysis, stored, and given as soon as the base has been analysed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Self

import attrs
import structlog

from eventlog import Commands, Context, EventLog, EventLogError, tick
from gctd.broker.blobs import Blobs
from gctd.control.bulkhead import Bulkhead
from gctd.control.comparing.baselines import Baseline, Baselines, different
from gctd.control.comparing.pairs import AnalysisPair, compared
from gctd.control.requests.tracker import Tracker
from gctd.domain.errors import NotFound, Overtaken
from gctd.domain.options import threshold_of
from gctd.domain.task import TASK
from gctd.domain.task.state import Task
from gctd.domain.verdict import VERDICT, AskVerdict, Finding, GiveVerdict, Result, Rules, VerdictAsked, verdict_id
from gctd.engines.changes.gate import GateFacts, GateVerdict, judge
from gctd.engines.state import State
from gctd.exports.coverage import Coverages, StatementCoverage
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import AnalysisView, TaskView, VerdictView
from projections import ProjectionError

_log = structlog.get_logger(__name__)

SWEEP, REST = 2.0, 10.0
"""Seconds between two looks at the verdicts that wait for their bases, and the same while none waits."""
AT_ONCE = 100
"""Limit of the verdicts that one sweep judges."""
_TRIES = 5


@attrs.frozen(kw_only=True)
class AnalysisJudgement:
    """The gate's judgement of an analysis.

    `id` is the id of the stored verdict, if it is stored. `base_task` analyses the base. `sequence` is the position of the stored
    events. `partial`: a report was shortened.
    """

    rules: Rules
    after: AnalysisView
    baseline: Baseline
    verdict: GateVerdict
    id: str | None = None
    base_task: TaskView | None = None
    sequence: int = 0
    partial: bool = False

    @property
    def result(self) -> Result:
        """The result of the gate."""
        return self.verdict.result

    @property
    def reason(self) -> str:
        """The reason of an unknown result."""
        return self.verdict.reason

    def waiting(self, task: TaskView | None) -> Self:
        """Return the judgement without a result: the base has no analysis, and this task is to make it."""
        return attrs.evolve(self, verdict=self.verdict.unknown(_waits(self.baseline, task)), base_task=task)


@attrs.frozen(eq=False)
class Judging:
    """Judges. `caught_up` waits until the read model has all that is in the log now."""

    _log: EventLog
    _commands: Commands
    _queries: TrackerQueries
    _blobs: Blobs
    _tracker: Tracker
    _baselines: Baselines
    _caught_up: Callable[[], Awaitable[None]] = attrs.field(kw_only=True)
    _coverages: Coverages = attrs.field(default=attrs.Factory(lambda self: Coverages(self._blobs), takes_self=True), init=False)
    _asked_now: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _judged_for: dict[str, int] = attrs.field(factory=dict, init=False)
    """The last analysis of the base for which a pending verdict was judged, by the verdict's id."""
    _bulkhead: Bulkhead = attrs.field(factory=lambda: Bulkhead("judging"), init=False)

    async def run(self) -> None:
        """Judge pending verdicts whose bases have been analysed, until cancelled. Errors are logged."""
        while True:
            self._asked_now.clear()
            pause = SWEEP
            try:
                if not await self.sweep():
                    pause = REST
            except (EventLogError, ProjectionError) as error:
                _log.warning("verdicts wait", error=str(error))
            await tick(pause, self._asked_now, after=SWEEP)

    async def sweep(self) -> bool:
        """Judge the pending verdicts whose bases have been analysed since the last sweep. Return whether any is pending."""
        pending = await self._queries.verdicts_waiting()
        for id_ in [id_ for id_, latest in self._judged_for.items() if pending.get(id_) != latest]:
            del self._judged_for[id_]
        due = [(id_, latest) for id_, latest in pending.items() if latest is not None and id_ not in self._judged_for]
        for id_, latest in due[:AT_ONCE]:
            with self._bulkhead.around(id_):
                kept = await self._queries.verdict(id_)
                found = None if kept is None else await self._of_kept(kept)
                if found is not None and found.verdict.settled:
                    await self._give(id_, found, None)
            self._judged_for[id_] = latest
        return bool(pending)

    async def look(self, after: AnalysisView, base: str, rules: Rules) -> AnalysisJudgement:
        """Return the given verdict, else the verdict as of now on this analysis. Stores no event.

        A base that was chosen stays the base. Raises the errors of `Baselines.choose`.
        """
        judged = await self.read(after, base, rules, None)
        if judged is None:
            judged = await self.read(after, base, rules, await self._baselines.choose(after, base))
        assert judged is not None, "the base is chosen"
        return judged

    async def read(self, after: AnalysisView, base: str, rules: Rules, chosen: Baseline | None) -> AnalysisJudgement | None:
        """As `look`, without a question to the remote repository. None: it needs a base that `Baselines.choose` has to choose."""
        kept = await self._queries.verdict(_id(after, base, rules))
        if kept is not None and kept.result is not Result.UNKNOWN and (found := await self._of_kept(kept)) is not None:
            return found
        if kept is not None and kept.base_commit:
            baseline = await self._baselines.again(after, kept.kind, kept.base_commit)
            same = kept.head_task == after.task_id
            return attrs.evolve(await self._judged(after, baseline, rules), id=kept.id if same else None)
        if not rules.compares:
            return await self._judged(after, Baseline(), rules)
        if not base:
            return await self._judged(after, await self._baselines.previous(after), rules)
        return None if chosen is None else await self._judged(after, await self._baselines.of(after, chosen), rules)

    async def against(self, after: AnalysisView, older: AnalysisView, rules: Rules) -> AnalysisJudgement:
        """Judge an analysis against a named older analysis. The result is not stored."""
        return await self._judged(after, Baseline(commit=older.commit_sha, analysis=older), rules)

    async def ask(self, after: AnalysisView, base: str, rules: Rules, context: Context | None) -> AnalysisJudgement:
        """Return the verdict as `look` does, and store it.

        A base without a comparable analysis is analysed, and the verdict follows. A result is not stored if another analysis of
        the same commits can change it.
        """
        found = await self.look(after, base, rules)
        waits = bool(found.baseline.commit) and found.baseline.analysis is None
        if not found.verdict.settled and not waits:
            return found
        if found.id is None:
            found = await self._asked(found, base, context)
        if found.verdict.settled:
            return attrs.evolve(found, sequence=max(found.sequence, await self._give(_id(after, base, rules), found, context)))
        return await self._with_base(found, context) if found.base_task is None else found

    async def _asked(self, found: AnalysisJudgement, base: str, context: Context | None) -> AnalysisJudgement:
        after, baseline = found.after, found.baseline
        id_ = _id(after, base, found.rules)
        asked = VerdictAsked(
            id=id_,
            repo_id=after.repo_id,
            analysis_id=after.analysis_id,
            head_task=after.task_id,
            commit_sha=after.commit_sha,
            base=base,
            kind=baseline.kind.value,
            base_commit=baseline.commit,
            rules=found.rules,
            at=datetime.now(UTC),
        )
        outcome = await self._commands.execute(VERDICT, id_, AskVerdict(asked=asked), context)
        self._asked_now.set()
        return attrs.evolve(found, id=id_, sequence=outcome.sequence)

    async def _give(self, id_: str, found: AnalysisJudgement, context: Context | None) -> int:
        given = GiveVerdict(
            result=found.result,
            base_task=found.baseline.analysis.task_id if found.baseline.analysis else "",
            checks=tuple(
                Finding(name=one.name.value, passed=one.passed, limit=one.limit, value=one.value) for one in found.verdict.checks
            ),
            at=datetime.now(UTC),
        )
        return (await self._commands.execute(VERDICT, id_, given, context)).sequence

    async def _of_kept(self, kept: VerdictView) -> AnalysisJudgement | None:
        """Return the content of a stored verdict; None if one of its analyses is removed."""
        after = await self._queries.analysis_of_task(kept.head_task)
        if after is None:
            return None
        baseline = Baseline()
        if kept.base_task:
            older = await self._queries.analysis_of_task(kept.base_task)
            if older is None:
                return None
            baseline = attrs.evolve(await self._baselines.again(after, kept.kind, kept.base_commit), analysis=older, reason="")
        elif kept.base_commit:
            baseline = await self._baselines.again(after, kept.kind, kept.base_commit)
        return attrs.evolve(await self._judged(after, baseline, kept.rules), id=kept.id)

    async def _judged(self, after: AnalysisView, baseline: Baseline, rules: Rules) -> AnalysisJudgement:
        coverage = None if rules.min_coverage is None else await self._coverages.of(after)
        found, partial = await compared(
            self._blobs,
            after,
            baseline.analysis,
            lambda pair: (verdict_on(pair, rules, coverage), pair.partial),
            rules.threshold,
        )
        judged = AnalysisJudgement(rules=rules, after=after, baseline=baseline, verdict=found, partial=partial)
        if not rules.compares or baseline.analysis is not None:
            return judged
        task = await self._base_task(after, baseline)
        if task is not None and task.status == "completed":  # perhaps since the search for its analysis
            now = await self._baselines.again(after, baseline.kind.value, baseline.commit)
            if now.analysis is not None:
                return await self._judged(after, now, rules)
        return judged.waiting(task)

    async def _base_task(self, after: AnalysisView, baseline: Baseline) -> TaskView | None:
        """Return the last task queued to analyse the base since the judged analysis was stored, by the order of the log.

        A completed task is not queued again: if its analysis was made in another way, a second analysis would be as well.
        """
        if not baseline.commit:
            return None
        for one in await self._queries.tasks_of_commit(after.repo_id, after.project, baseline.commit):
            if await self._log.last(TASK.aggregate(one.id), up_to=after.sequence) is None:
                return one
        return None

    async def _with_base(self, found: AnalysisJudgement, context: Context | None) -> AnalysisJudgement:
        """Queue an analysis of the base in the same way as the commit. Several servers at the same moment queue it once."""
        after, baseline = found.after, found.baseline
        head = await self._state(after.task_id)
        for _ in range(_TRIES):
            known = await self._tracker.registered_as(after.repo_id, after.repo_url)
            await self._caught_up()
            now = await self._baselines.again(after, baseline.kind.value, baseline.commit)
            if now.analysis is not None:  # analysed since the search
                return attrs.evolve(await self._judged(after, now, found.rules), id=found.id, sequence=found.sequence)
            task = await self._base_task(after, baseline)
            sequence = found.sequence
            if task is None:
                try:
                    outcome = await self._tracker.analyze_base(known, head, baseline.commit, context)
                except Overtaken:
                    continue
                task, sequence = TaskView.of_state(outcome.state, outcome.sequence), outcome.sequence
            return attrs.evolve(found.waiting(task), sequence=max(found.sequence, sequence))
        raise Overtaken(f"{after.repo_url} is busy: other analyses were scheduled at the same time. Try again")

    async def _state(self, task_id: str) -> Task:
        commit = await self._log.last(TASK.aggregate(task_id), consistent=True)
        if commit is None:
            raise NotFound(f"there is no {task_id}")
        state: Task = commit.state
        return state


def verdict_on(pair: AnalysisPair, rules: Rules, coverage: StatementCoverage | None) -> GateVerdict:
    """Judge an analysis against its base, for every way to ask. `coverage` may be None if no rule needs it."""
    found = judge(rules, _facts(pair, rules, coverage))
    if not rules.compares:
        return found
    if pair.before is None:
        return found.unknown("there is no analysis to compare with")
    differing = different(pair.before, pair.after)
    return found.unknown(f"measured differently: {', '.join(differing)}") if differing else found


def _facts(pair: AnalysisPair, rules: Rules, coverage: StatementCoverage | None) -> GateFacts:
    after = pair.after
    summary = after.known
    entries, shortened = pair.report.entries, pair.report.is_shortened
    own = rules.threshold == threshold_of(after.flags)
    # No hidden function has a higher value than one that is shown.
    below = any(entry.state.known and entry.crap <= rules.threshold for entry in entries)
    lacking = {state.value for state in State if not state.known and not state.outside}
    listed = sum(entry.state.value in lacking for entry in entries)
    return GateFacts(
        entries=entries,
        functions=summary.total_funcs,
        # A shortened report does not have all functions; their number at the project's own threshold is known all the same.
        exceeded=summary.exceeded if own else sum(entry.risky(rules.threshold) for entry in entries),
        at_least=shortened and not own and not below,
        shortened=shortened,
        average=summary.average,
        coverage=None if coverage is None else coverage.percent,
        uncovered=len(after.uncovered),
        # A function that is only hidden in one of the reports would be new, or gone.
        changes=None if pair.partial else pair.changes,
        lower_bound=any(package.tested for package in after.uncovered),
        incomplete=coverage is not None and not coverage.complete,
        measured=after.known.total_funcs > 0 or after.summary.total_funcs == 0,
        hidden=sum(count for name, count in after.states.items() if name in lacking) - listed,
        partial=pair.partial,
        unread=tuple(one for one in pair.report.warnings if one.unread),
    )


def _id(after: AnalysisView, base: str, rules: Rules) -> str:
    return verdict_id(after.analysis_id, after.commit_sha, base, rules)


def _waits(baseline: Baseline, task: TaskView | None) -> str:
    if task is None or task.status == "completed":
        return baseline.reason
    if task.status in ("failed", "expired"):
        return f"{baseline.reason}, and {task.id}, which was to analyse it, has {task.status}: {task.reason}"
    return f"{baseline.reason}: {task.id} analyses it"
