"""Puts pending jobs into queues: each to a worker that can run it, few at a time, and in turns between repositories.

Any number of control planes may do so at the same time. A job that two of them put into a queue is one job, by its message id;
if it is two after all, the second one finds that its aggregate has moved on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from itertools import chain

import attrs
import structlog

from eventlog import (
    AggregateDamaged,
    AggregateId,
    Commands,
    Commit,
    EventLog,
    EventLogError,
    Trace,
    UndecodableCommit,
    recording_spans,
    tick,
)
from gctd.broker.presence import Presence
from gctd.broker.queue import JobState
from gctd.control.bulkhead import Bulkhead
from gctd.control.heartbeat import decoded
from gctd.control.jobs import JobKind, JobTicket, aggregate_of, due, waits, wanted
from gctd.control.lanes.backlog import Group, JobBacklog, Key, QueuedJob, Way, key_of
from gctd.control.lanes.fleet import Everywhere, Fleet, Nowhere, Only, Route
from gctd.control.lanes.leftovers import Leftovers
from gctd.control.lanes.queues import JobQueues
from gctd.control.lanes.tracing import export
from gctd.domain.capabilities import Needs
from gctd.domain.errors import NotFound, Refused
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.commands import BlockTask, UnblockTask

_log = structlog.get_logger(__name__)

LOOK = 0.5
"""Seconds between two looks at the present workers while jobs are pending."""
REST = 5.0
"""The same, while none is."""
FRESH = 0.25
"""Seconds for which a look at the present workers is good enough to place a job."""
GRACE = 1.0
"""Seconds for which a capability must be missing until the task shows it: a worker that restarts is away for a moment."""
AT_ONCE = 32
"""Commands that run concurrently."""

_MOVING = frozenset(
    {
        *("RepoRegistered", "DiscoveryRequested", "DiscoveryStarted", "DiscoveryAttemptFailed", "RepoReady", "RepoFailed"),
        *("TaskQueued", "TaskBlocked", "TaskUnblocked", "TaskStarted", "TaskAttemptFailed", "TaskAttemptLost", "TaskRetried"),
        *("TaskCompleted", "TaskFailed", "TaskExpired", "TaskCancelled", "TaskDeleted", "TaskDropped", "RepoRemoved"),
    }
)


class Lanes:
    """The jobs of one control plane. `patience`: seconds until a job that no worker has started is looked up."""

    def __init__(
        self, log: EventLog, commands: Commands, queues: JobQueues, presence: Presence, *, patience: float = 15.0
    ) -> None:
        self._log = log
        self._commands = commands
        self._queues = queues
        self._presence = presence
        self._patience = patience
        self._backlog = JobBacklog()
        self._leftovers = Leftovers(log, queues)
        self._fleet = Fleet()
        self._looked = float("-inf")
        self._routes: dict[Needs, Route] = {}
        self._missing: dict[Needs, float] = {}
        self._busy: dict[tuple[str, bool], int] = {}
        self._bulkhead = Bulkhead("lanes")
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        self.dispatched = 0
        """Jobs put into a queue since the start."""

    @property
    def held(self) -> int:
        """Jobs that wait for a place in a queue."""
        return self._backlog.pending

    def knows(self, kind: JobKind, id_: str) -> bool:
        """Return whether a job is pending, in a queue or at work, as far as this control plane has seen."""
        return (kind, id_) in self._backlog

    def forget(self) -> None:
        """Forget all jobs, as a new process: the waiting ones are found by the tables."""
        self._backlog = JobBacklog()

    def saw(self, commit: Commit) -> None:
        """Take note of a commit of the log. Raises UndecodableCommit."""
        if all(event.type not in _MOVING for event in commit.body.events):
            return
        state = commit.state
        key: Key = (JobKind.DISCOVER if isinstance(state, Repo) else JobKind.SCAN, state.id)
        if (ticket := wanted(commit)) is not None:
            self._backlog.offer(ticket)
            if ticket.blocked:
                self._news.set()
        elif state.lease is not None:
            fast = isinstance(state, Repo) or state.without_tests
            group = Group(fast, Needs(), state.id if isinstance(state, Repo) else state.repo_id)
            self._backlog.put(key, QueuedJob(group, None, state.lease.worker, time.monotonic(), running=True))
        else:
            self._backlog.remove(key)

    async def run(self) -> None:
        """Check the workers, and jobs that no worker takes, until cancelled. Errors are logged."""
        while True:
            try:
                await self.look()
                await self._settle()
                await self.place()
                await self._recheck()
                await self._leftovers.remove(self.knows)
            except (EventLogError, Refused) as error:
                _log.warning("lanes wait", error=str(error))
            await tick(LOOK if self._backlog.pending else REST, self._news)
            self._news.clear()

    async def look(self) -> None:
        """Check the present workers. Raises Unavailable."""
        heard = await self._presence.present()
        self._fleet = Fleet({id_: decoded(payload) for id_, payload in heard.items()})
        self._looked, self._routes = time.monotonic(), {}
        for key, placed in list(self._backlog.placed.items()):
            if placed.ticket is not None and not self._is_served(placed):
                await self._queues.take_back(*key)
                self._wait_again(placed.ticket, _again(placed.ticket))

    async def place(self) -> None:
        """Put pending jobs into queues until no place is left. Raises Unavailable, OutcomeUnknown."""
        async with self._turn:
            if not self._backlog.pending:
                return
            if time.monotonic() - self._looked > FRESH:
                await self.look()
            chosen = self._chosen()
            try:
                for lane in tuple(chosen):
                    await self._put_in(*lane, chosen[lane])
                    del chosen[lane]
            except EventLogError:
                for ticket in chain.from_iterable(chosen.values()):
                    self._wait_again(ticket, ticket)
                raise

    async def _put_in(self, worker: str, fast: bool, tickets: Sequence[JobTicket]) -> None:  # noqa: FBT001 - the key of a lane
        began = time.time_ns()
        queue = self._queues.of(worker, fast=fast) if worker else self._queues.shared(fast=fast)
        await queue.publish_all(tickets)
        self.dispatched += len(tickets)
        for ticket in tickets:
            trace = Trace.parse(ticket.context.traceparent)
            if trace is not None and recording_spans():
                export(ticket, trace, began)
            lane = worker or "shared"
            _log.debug("job put into the queue", id=ticket.id, lane=lane, trace_id=trace and trace.trace_id)

    def _wait_again(self, placed: JobTicket, now: JobTicket) -> None:
        """Let a job that has a place wait for one, unless the log has moved it on in the meantime."""
        found = self._backlog.placed.get(key_of(placed))
        if found is not None and found.ticket is placed:
            self._backlog.offer(now)

    async def recover(self, aggregate: AggregateId, kind: JobKind) -> None:
        """Take care of an aggregate that waits without a known job. Raises Unavailable, OutcomeUnknown."""
        last = await self._log.last(aggregate, consistent=True)
        ticket = None if last is None else due(last, datetime.now(UTC))
        if ticket is None or self.knows(kind, aggregate.id):
            return
        group = Group(ticket.fast, ticket.needs, ticket.repo)
        if await self._queues.shared(fast=ticket.fast).lookup(kind, aggregate.id) is JobState.WAITING:
            self._backlog.put(key_of(ticket), QueuedJob(group, ticket, "", time.monotonic()))
            return
        await self._queues.take_back(kind, aggregate.id)
        self._backlog.offer(_again(ticket))
        _log.info("job given again", kind=kind.value, id=aggregate.id)
        await self.place()

    def _chosen(self) -> dict[tuple[str, bool], list[JobTicket]]:
        """The pending jobs for which there is a place now, by worker (empty: the shared queue) and kind of lane."""
        waiting = {True: 0, False: 0}
        self._busy = {}
        for placed in self._backlog.placed.values():
            if placed.worker:
                self._occupy(placed.worker, fast=placed.group.fast)
            else:
                waiting[placed.group.fast] += 1
        chosen: dict[tuple[str, bool], list[JobTicket]] = {}

        def can_go(way: Way) -> bool:
            is_short, needs = way
            route = self._route(needs)
            fast = is_short and self._fleet.has_fast(route)
            match route:
                case Everywhere.SHARED:
                    return waiting[fast] < self._fleet.window(fast=fast)
                case Only(workers):
                    return any(self._free(worker, fast=fast) > 0 for worker in workers)
                case _:
                    return False

        while (ticket := self._backlog.next(can_go)) is not None:
            route = self._route(ticket.needs)
            fast = ticket.fast and self._fleet.has_fast(route)
            worker = ""
            if isinstance(route, Only):
                worker = max((self._free(one, fast=fast), one) for one in route.workers)[1]
                self._occupy(worker, fast=fast)
            else:
                waiting[fast] += 1
            placed = QueuedJob(Group(fast, ticket.needs, ticket.repo), ticket, worker, time.monotonic())
            self._backlog.put(key_of(ticket), placed)
            chosen.setdefault((worker, fast), []).append(ticket)
        return chosen

    def _occupy(self, worker: str, *, fast: bool) -> None:
        self._busy[worker, fast] = self._busy.get((worker, fast), 0) + 1

    def _free(self, worker: str, *, fast: bool) -> int:
        return self._fleet.slots(worker, fast=fast) - self._busy.get((worker, fast), 0)

    def _is_served(self, placed: QueuedJob) -> bool:
        """Return whether a worker takes jobs from the queue of this job. A shared queue waits for the next worker."""
        if placed.worker:
            return self._fleet.slots(placed.worker, fast=placed.group.fast) > 0
        return not placed.group.fast or self._fleet.has_fast(Everywhere.SHARED)

    def _route(self, needs: Needs) -> Route:
        if needs not in self._routes:
            self._routes[needs] = self._fleet.route(needs)
        return self._routes[needs]

    async def _settle(self) -> None:
        """Record in the log that no worker can run a task, or that a worker can run it now."""
        reasons: dict[Needs, str] = {}
        for _, needs in self._backlog.ways():
            route = self._route(needs)
            if isinstance(route, Nowhere) and route.blocked:
                since = self._missing.setdefault(needs, time.monotonic())
                if time.monotonic() - since >= GRACE:
                    reasons[needs] = route.reason
            else:
                self._missing.pop(needs, None)
        at = datetime.now(UTC)
        todo: list[Awaitable[None]] = []
        for group, tickets in self._backlog.groups():
            if (reason := reasons.get(group.needs)) is not None:
                todo += [self._say(one, BlockTask(reason=reason, at=at)) for one in tickets if one.blocked != reason]
            elif group.needs not in self._missing:
                todo += [self._say(one, UnblockTask(at=at)) for one in tickets if one.blocked]
        for start in range(0, len(todo), AT_ONCE):
            await asyncio.gather(*todo[start : start + AT_ONCE])

    async def _say(self, ticket: JobTicket, command: BlockTask | UnblockTask) -> None:
        try:
            outcome = await self._commands.execute(TASK, ticket.id, command, ticket.context.in_new_span())
        except (NotFound, AggregateDamaged, UndecodableCommit):
            self._backlog.remove(key_of(ticket))
            return
        if not waits(outcome.state):
            self._backlog.remove(key_of(ticket))
        elif key_of(ticket) in self._backlog:
            blocked = outcome.state.reason if outcome.state.blocked else ""
            self._backlog.offer(attrs.evolve(ticket, blocked=blocked))

    async def _recheck(self) -> None:
        """Queue jobs again that were lost from their queue or by a worker."""
        for key, placed in self._overdue():
            queue = self._queues.of(placed.worker, fast=placed.group.fast) if placed.worker else None
            queue = queue or self._queues.shared(fast=placed.group.fast)
            if await queue.lookup(*key) is JobState.WAITING:
                if self._backlog.placed.get(key) is placed:
                    self._backlog.put(key, attrs.evolve(placed, at=time.monotonic()))
            elif self._backlog.placed.get(key) is placed:
                self._backlog.remove(key)
                with self._bulkhead.around(key[1]):
                    await self.recover(aggregate_of(*key), key[0])

    def _overdue(self) -> Sequence[tuple[Key, QueuedJob]]:
        now = time.monotonic()
        return [
            (key, placed)
            for key, placed in self._backlog.placed.items()
            if not placed.running and now - placed.at > self._patience
        ]


def _again(ticket: JobTicket) -> JobTicket:
    """The same job under another message id, so that the server does not drop it as a duplicate."""
    return attrs.evolve(ticket, dedupe=f"{ticket.dedupe}:{time.time_ns()}")
