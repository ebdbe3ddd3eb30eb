"""The check for updates: it finds projects whose tracked ref has moved past their latest analysis, and analyses them.

Remote refs are looked up; no object is transferred. No commit is scheduled twice: the repository remembers the commit of a
project for which a check last queued a task, whatever its outcome. The tasks are queued under the guard that no other analysis
was requested since the check read the tasks under way. So any number of checks may run at the same time, on any servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs

from eventlog import Context, EventLog
from gctd.control.bulkhead import OF_ONE
from gctd.control.requests.new_tasks import ObservedRef, may_be_latest
from gctd.control.requests.policy import MOST_PROJECTS
from gctd.control.requests.tracker import Tracker
from gctd.domain.errors import BadInput, Overtaken
from gctd.domain.options import parse_duration
from gctd.domain.repo.config import effective, own_ref, tracked_ref
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import RepoView, TaskView
from gctd.scan.errors import GitError, ScanError
from gctd.scan.git.commands import Git
from gctd.scan.git.refs import RemoteRef

PROBES = 8
"""Repositories that are asked at the same time."""
LONGEST_PROBE = 30.0
"""Seconds that a repository has to answer, unless the git timeout is shorter."""
_TRIES = 5


@attrs.frozen(kw_only=True)
class RefUpdate:
    """Finding of a check about one project. If `project` is None, the repository has no project to check.

    `ref` is the tracked ref of the project. `recorded_sha` is the commit of its latest analysis, None before the first one.
    `remote_sha` is the current commit of `ref`. `moved`: they differ. `scheduled`: this check has queued `task_id` for it.
    `note` is the reason for no action, `error` the reason for a failed look-up of the ref or the repository.
    """

    repo_url: str
    project: str | None = None
    ref: str | None = None
    recorded_sha: str | None = None
    remote_sha: str | None = None
    moved: bool = False
    scheduled: bool = False
    task_id: str | None = None
    note: str | None = None
    error: str | None = None


@attrs.frozen(kw_only=True)
class Checked:
    """Findings of a check, by repository and project. `after`: URL and id at which the next page begins, None at the end.

    `sequence` is the sequence of the last commit which the check stored, 0 if it stored none.
    """

    updates: tuple[RefUpdate, ...]
    sequence: int = 0
    after: tuple[str, str] | None = None


@attrs.frozen(eq=False)
class Updates:
    """Checks repositories. `caught_up` waits until the read model has all that is in the log now."""

    _log: EventLog
    _queries: TrackerQueries
    _tracker: Tracker
    _git: Git
    _caught_up: Callable[[], Awaitable[None]] = attrs.field(kw_only=True)
    _git_timeout: float = attrs.field(kw_only=True)
    _probing: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(PROBES), init=False)

    async def check_one(self, repo_url: str, *, schedule: bool, context: Context | None = None) -> Checked:
        """Check one repository. Raises BadInput, NotFound, and the errors of storing a commit."""
        known = await self._tracker.registered(repo_url)
        return await self._check(known.id, schedule=schedule, context=context)

    async def check_all(
        self, *, schedule: bool, after: tuple[str, str] = ("", ""), limit: int, context: Context | None = None
    ) -> Checked:
        """Check at most `limit` repositories, by URL, those behind `after`. Raises what storing a commit raises.

        A repository that cannot be checked becomes an error in the result.
        """
        found = await self._queries.repos_by_url(after=after, limit=limit + 1)
        page = found[:limit]
        parts = await asyncio.gather(*(self._check_apart(repo, schedule=schedule, context=context) for repo in page))
        return Checked(
            updates=tuple(update for part in parts for update in part.updates),
            sequence=max((part.sequence for part in parts), default=0),
            after=(page[-1].url, page[-1].id) if len(found) > len(page) else None,
        )

    async def _check_apart(self, repo: RepoView, *, schedule: bool, context: Context | None) -> Checked:
        try:
            return await self._check(repo.id, schedule=schedule, context=context)
        except OF_ONE as error:
            return Checked(updates=(RefUpdate(repo_url=repo.url, error=str(error)),))

    async def _check(self, id_: str, *, schedule: bool, context: Context | None) -> Checked:
        known = await self._tracker.registered_as(id_)
        if known.status is not RepoStatus.READY:
            reason = "it is still registering" if known.status is RepoStatus.REGISTERING else f"it is in error: {known.reason}"
            return Checked(updates=(RefUpdate(repo_url=known.url, note=f"skipped: {reason}"),))
        remote = await self._probe(known)
        for _ in range(_TRIES):
            await self._caught_up()
            updates = await self._compared(known, remote)
            due = [update for update in updates if update.moved and update.note is None][:MOST_PROJECTS]
            if not schedule or not due:
                return Checked(updates=updates)
            try:
                return await self._scheduled(known, updates, due, context)
            except Overtaken:
                known = await self._tracker.registered_as(id_)
        raise Overtaken(f"{known.url} is busy: other analyses were scheduled at the same time. Try again")

    async def _probe(self, known: Repo) -> Mapping[str, RemoteRef | str]:
        """Return the commit of each project's ref, or the reason why it is unknown."""
        tracked = {project.name: own_ref(known.configs, project.name) for project in known.projects if not project.problem}
        default = known.default_ref or None
        # The check follows a renamed default branch: so it asks for the repository's current default branch and for the known
        # one.
        asked = {ref or default for ref in tracked.values()} | ({None} if None in tracked.values() else set())
        root = effective(known.configs, "")
        seconds = parse_duration(root.git_timeout) if root.git_timeout else self._git_timeout
        try:
            async with self._probing, asyncio.timeout(min(seconds, LONGEST_PROBE)):
                url = self._tracker.parse_url(known.clone_url)
                found = await self._git.resolve_all(url, asked, seconds=seconds)
        except TimeoutError:
            return dict.fromkeys(tracked, f"no answer within {min(seconds, LONGEST_PROBE):g} s")
        except (ScanError, BadInput) as error:
            return dict.fromkeys(tracked, str(error))
        return {project: _answer(found, ref, default) for project, ref in tracked.items()}

    async def _compared(self, known: Repo, remote: Mapping[str, RemoteRef | str]) -> tuple[RefUpdate, ...]:
        """Compare each project's ref with its latest analysis. `note` is the reason if a moved ref needs no task."""
        recorded = await self._queries.latest_commits(known.id)
        under_way = await self._queries.tasks_under_way(known.id)
        updates = []
        for project in known.projects:
            update = RefUpdate(repo_url=known.url, project=project.name, recorded_sha=recorded.get(project.name))
            found = remote.get(project.name)
            if isinstance(found, RemoteRef):
                update = attrs.evolve(update, ref=found.name, remote_sha=found.commit_sha)
                if found.commit_sha != update.recorded_sha:
                    update = await self._explained(known, update, under_way)
            else:
                ref = tracked_ref(known.configs, known.default_ref, project.name)
                problem = f"cannot be analysed: {project.problem}" if project.problem else None
                update = attrs.evolve(update, ref=ref, note=problem, error=found)
            updates.append(update)
        return tuple(updates)

    async def _explained(self, known: Repo, update: RefUpdate, under_way: Sequence[TaskView]) -> RefUpdate:
        """Return the update of a moved ref. It has a note if a task exists that analyses its commit for the project."""
        for task in under_way:
            ours = task.project == update.project and task.commit_sha in (None, update.remote_sha)
            if ours and await may_be_latest(self._log, task, update.ref or ""):
                return attrs.evolve(update, moved=True, task_id=task.id, note=f"{task.id} is {task.status}")
        if known.checked.get(update.project or "") == update.remote_sha:
            note = "a task for this commit was queued before: to try it again, ask for an analysis"
            return attrs.evolve(update, moved=True, note=note)
        return attrs.evolve(update, moved=True)

    async def _scheduled(
        self, known: Repo, updates: Sequence[RefUpdate], due: Sequence[RefUpdate], context: Context | None
    ) -> Checked:
        seen = [
            ObservedRef(project=update.project, ref=update.ref, commit_sha=update.remote_sha)
            for update in due
            if update.project is not None and update.ref is not None and update.remote_sha is not None
        ]
        # The repository takes the new name of its default branch over: else its analyses could not become the latest.
        names = {one.ref for one in seen if own_ref(known.configs, one.project) is None} - {known.default_ref}
        outcomes = await self._tracker.rescan(known, seen, default_ref=min(names, default=""), context=context)
        tasks = {outcome.state.project: outcome.state.id for outcome in outcomes}
        return Checked(
            updates=tuple(
                attrs.evolve(update, scheduled=True, task_id=tasks[update.project]) if update.project in tasks else update
                for update in updates
            ),
            sequence=outcomes[-1].sequence,
        )


def _answer(found: Mapping[str | None, RemoteRef | GitError], ref: str | None, default: str | None) -> RemoteRef | str:
    """Return the finding for a project that tracks this ref, None for the default branch."""
    answer = found[ref or default]
    if ref is None and isinstance(answer, GitError):
        answer = found[None]
    return str(answer) if isinstance(answer, GitError) else answer
