"""From a delivery to the status and the comment at the forge: a process with every step in the log.

It continues from the state of the aggregate, on any server. A step is a command under the aggregate's guard. So any number of
servers may run this. An attempt at the forge belongs to one of them for a minute.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from uuid import uuid4

import attrs
import structlog

from eventlog import BlobMissing, Commands, CommandStep, EventLog, EventLogError
from gctd.control.comparing.judging import AnalysisJudgement
from gctd.control.forges.api import ForgeApi, ForgeFailed, status_name
from gctd.control.forges.configured import Forge
from gctd.control.forges.decided import AnalysedCommit, decided
from gctd.control.forges.report_contents import ReportContents
from gctd.control.requests.new_tasks import may_be_latest
from gctd.control.requests.tracker import Tracker
from gctd.domain.delivery import DELIVERY
from gctd.domain.delivery.commands import (
    CLAIM,
    AttemptReport,
    DecideReport,
    DeliveryCommand,
    EndDelivery,
    FinishAttempt,
    ScheduleDelivery,
    may_attempt,
)
from gctd.domain.delivery.events import DeliveryEvent, Part
from gctd.domain.delivery.state import Delivery, DeliveryStatus
from gctd.domain.errors import GctdError, Overtaken, Refused
from gctd.domain.repo import REPO
from gctd.domain.repo.config import tracked_ref
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.task import TASK
from gctd.domain.task.state import TaskStatus
from gctd.domain.verdict import Result
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import TaskView
from projections import ProjectionError

_log = structlog.get_logger(__name__)

SWEEP = 1.0
"""Seconds between two looks at the deliveries that have not ended."""
CONCURRENT = 32
"""Deliveries that are worked on concurrently."""
PER_FORGE = 8
"""Attempts at one forge at the same time: a forge that is slow does not delay the deliveries of others."""
LONGEST_ATTEMPT = CLAIM.total_seconds() - 5
"""Seconds of an attempt: it must end before another server may begin one."""


@attrs.frozen(eq=False)
class Reporting:
    """Answers deliveries while `run` runs.

    `caught_up` waits until the read model has all that is in the log now.
    """

    _log: EventLog
    _commands: Commands
    _queries: TrackerQueries
    _tracker: Tracker
    _forges: Mapping[str, Forge]
    _contents: ReportContents
    _caught_up: Callable[[], Awaitable[None]] = attrs.field(kw_only=True)
    _server: str = attrs.field(factory=lambda: uuid4().hex, init=False)
    _running: dict[str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    _scheduling: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _looks: Iterator[int] = attrs.field(factory=itertools.count, init=False)
    _looked: dict[str, int] = attrs.field(factory=dict, init=False)
    """The number of the last look at a delivery, by its id."""
    _attempting: Counter[str] = attrs.field(factory=Counter, init=False)
    """Attempts under way, by host of the forge."""

    async def run(self) -> None:
        """Continue all deliveries until cancelled. Errors are logged."""
        try:
            await self._sweep()
        finally:
            tasks = list(self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            try:
                for id_ in self._next(await self._queries.deliveries_under_way()):
                    self._looked[id_] = next(self._looks)
                    self._running[id_] = asyncio.create_task(self._advance(id_))
            except (EventLogError, ProjectionError) as error:
                _log.warning("reports to forges wait", error=str(error))
            await asyncio.sleep(SWEEP)

    def _next(self, under_way: Sequence[str]) -> Sequence[str]:
        """The deliveries to look at now: new ones first, then the ones whose last look is the longest ago."""
        for ended in self._looked.keys() - set(under_way):
            del self._looked[ended]
        idle = [id_ for id_ in under_way if id_ not in self._running]
        return sorted(idle, key=lambda id_: self._looked.get(id_, -1))[: CONCURRENT - len(self._running)]

    async def _advance(self, id_: str) -> None:
        """One step of one delivery."""
        try:
            await self.advance(id_)
        except Overtaken:
            _log.debug("another analysis was asked for at the same moment", delivery=id_)
        except (BlobMissing, GctdError) as error:
            await self._give_up(id_, error)
        except (EventLogError, ProjectionError) as error:
            _log.warning("report to a forge waits", delivery=id_, error=str(error))
        finally:
            del self._running[id_]

    async def _give_up(self, id_: str, error: BlobMissing | GctdError) -> None:
        try:
            _log.warning("no report to the forge", delivery=id_, reason=str(error))
            await self._execute(id_, EndDelivery(reason=str(error), at=_now()))
        except EventLogError as problem:
            _log.warning("report to a forge waits", delivery=id_, error=str(problem))

    async def advance(self, id_: str) -> None:
        """Take the next step of a delivery, if it is due. Raises what tracker and gate raise."""
        last = await self._log.last(DELIVERY.aggregate(id_), consistent=True)
        if last is None:
            return
        state: Delivery = last.state
        match state.status:
            case DeliveryStatus.RECEIVED:
                async with self._scheduling:  # of several deliveries of a repository at once, only one could queue its tasks
                    await self._schedule(state)
            case DeliveryStatus.SCHEDULED:
                await self._decide(state)
            case DeliveryStatus.DECIDED:
                await self._report(state)
            case _:
                pass

    async def _execute(self, id_: str, command: DeliveryCommand) -> Delivery:
        outcome = await self._commands.execute(DELIVERY, id_, command)
        return outcome.state

    # Tasks

    async def _schedule(self, state: Delivery) -> None:
        """Queue the tasks, in one append with the event that names them. A task of the same commit is not queued again."""
        known = await self._tracker.registered_as(state.repo_id, state.repo_url)
        if known.status is RepoStatus.REGISTERING:
            return
        if known.status is not RepoStatus.READY:
            raise Refused(f"{known.url} cannot be analysed: {known.reason or known.status}")
        await self._caught_up()  # the tables have the tasks that the repository's state counts
        names = [project.name for project in known.projects if project.problem is None]
        there: dict[str, str] = {}
        for name in names:
            if (usable := await self._usable(known, name, state)) is not None:
                there[name] = usable
        new = [name for name in names if name not in there]

        def step(tasks: Sequence[str]) -> CommandStep[Delivery, DeliveryCommand, DeliveryEvent]:
            return CommandStep(DELIVERY, state.id, ScheduleDelivery(tasks=(*there.values(), *tasks), at=_now()))

        if new:
            await self._tracker.analyze_commit(
                known, new, ref=state.ref, commit_sha=state.commit_sha, pull=state.number is not None, step=step
            )
        else:
            await self._execute(state.id, step(()).command)

    async def _usable(self, known: Repo, name: str, state: Delivery) -> str | None:
        """Return the newest task of the commit that can answer the delivery, None without one.

        A push to the ref that a project tracks makes the latest analysis: a task for a pull request or for a base never does. If
        the ref was set back to an earlier commit, neither does the earlier task of that commit.
        """
        tracked = state.number is None and state.ref == tracked_ref(known.configs, known.default_ref, name)
        latest = (await self._queries.latest_commits(known.id)).get(name) if tracked else None
        if tracked and any(
            one.project == name and one.ref == state.ref and one.commit_sha != state.commit_sha
            for one in await self._queries.tasks_under_way(known.id)
        ):
            return None
        for one in await self._queries.tasks_of_commit(known.id, name, state.commit_sha):
            if one.status in ("failed", "expired") or (tracked and one.status == "completed" and latest != state.commit_sha):
                continue
            if not tracked or await may_be_latest(self._log, one, state.ref):
                return one.id
        return None

    # The result

    async def _decide(self, state: Delivery) -> None:
        tasks = await self._tasks(state)
        if any(task is not None and not TaskStatus(task.status).terminal for task in tasks):
            return
        commit = await self._commit(state, tasks)
        if (missing := commit.missing()) is not None:
            await self._execute(state.id, DecideReport(state="error", description=missing, not_judged=(), at=_now()))
            return
        judged = [await self._contents.judged(state, task.id, store=True) for task in commit.analysed]
        if not any(one.result is Result.UNKNOWN and _base_is_under_way(one) for one in judged):
            await self._execute(state.id, decided(judged, commit.not_judged, _now()))

    async def _commit(self, state: Delivery, tasks: Sequence[TaskView | None]) -> AnalysedCommit:
        """Return the tasks of the commit with its projects, which each of its analyses has."""
        repo = await self._log.last(REPO.aggregate(state.repo_id), consistent=True)
        known: Sequence[Project] = () if repo is None else repo.state.projects
        refused = frozenset(project.name for project in known if project.problem is not None)
        for id_ in [task.id for task in tasks if task is not None and task.status == "completed"]:
            last = await self._log.last(TASK.aggregate(id_))
            if last is not None and last.state.analysis is not None and (found := last.state.analysis.projects):
                return AnalysedCommit(tasks, frozenset(found), refused)
        return AnalysedCommit(tasks, frozenset(), refused)

    async def _tasks(self, state: Delivery) -> Sequence[TaskView | None]:
        """The tasks of a delivery; None for a deleted one. One that the read model does not have yet is not a deleted one."""
        found = [await self._queries.task(id_) for id_ in state.tasks]
        if None in found:
            await self._caught_up()
            found = [await self._queries.task(id_) for id_ in state.tasks]
        return found

    # The forge

    async def _report(self, state: Delivery) -> None:
        if not may_attempt(state, _now()):
            return
        forge = self._forges.get(state.forge)
        if forge is None:
            raise Refused(f"the forge {state.forge} is not configured any more")
        if self._attempting[state.forge] >= PER_FORGE:
            return
        self._attempting[state.forge] += 1
        try:
            end = await self._attempt(state, ForgeApi(forge))
        finally:
            self._attempting[state.forge] -= 1
        if end is not None:
            await self._execute(state.id, end)

    async def _attempt(self, state: Delivery, api: ForgeApi) -> FinishAttempt | None:
        """Send the next part, and return the end of the attempt. Return None if another server attempts it."""
        latest = asyncio.get_running_loop().time() + LONGEST_ATTEMPT
        attempted = await self._execute(state.id, AttemptReport(server=self._server, at=_now()))
        part = attempted.next_part
        if attempted.server != self._server or attempted.attempt != state.attempt + 1 or part is None:
            return None
        try:
            async with asyncio.timeout_at(latest):
                if part is Part.STATUS:
                    if not await self._later_status(attempted):
                        await api.put_status(attempted, await self._contents.target(attempted))
                else:
                    await api.put_comment(attempted, await self._contents.comment(attempted))
        except TimeoutError:
            failure = ForgeFailed(f"no answer within {LONGEST_ATTEMPT:.0f} s")
        except ForgeFailed as error:
            failure = error
        else:
            return FinishAttempt(server=self._server, part=part, at=_now())
        _log.warning("forge not told", delivery=state.id, part=part.value, reason=str(failure))
        return FinishAttempt(
            server=self._server,
            part=part,
            at=_now(),
            reason=str(failure),
            permanent=failure.permanent,
            pause=failure.pause,
        )

    async def _later_status(self, state: Delivery) -> bool:
        """Report whether the forge has the status of a later delivery in the place of this one."""
        for id_ in await self._queries.deliveries_after(state.repo_id, state.commit_sha, state.received_at):
            last = await self._log.last(DELIVERY.aggregate(id_))
            if last is not None and status_name(last.state) == status_name(state) and Part.STATUS in last.state.delivered:
                return True
        return False


def _base_is_under_way(judged: AnalysisJudgement) -> bool:
    return judged.base_task is not None and not TaskStatus(judged.base_task.status).terminal


def _now() -> datetime:
    return datetime.now(UTC)
