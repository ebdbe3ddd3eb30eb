"""The aggregate of a worker. It has a lasting id, and a new session for each start. Users pause and resume it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from eventlog import Decider
from gctd.domain.errors import NotFound
from gctd.domain.registry import REGISTRY

CATEGORY = "gctd.worker"


# Events


@REGISTRY.event("WorkerStarted")
@attrs.frozen(kw_only=True)
class WorkerStarted:
    """A process began to work under this id."""

    id: str
    session: str
    host: str
    pid: int
    at: datetime


@REGISTRY.event("WorkerStopped")
@attrs.frozen(kw_only=True)
class WorkerStopped:
    """The process of a session ended in order."""

    session: str
    at: datetime


@REGISTRY.event("WorkerPaused")
@attrs.frozen(kw_only=True)
class WorkerPaused:
    """The worker takes no more jobs; a running job continues."""

    at: datetime


@REGISTRY.event("WorkerUnpaused")
@attrs.frozen(kw_only=True)
class WorkerUnpaused:
    """The worker takes jobs again."""

    at: datetime


WorkerEvent = WorkerStarted | WorkerStopped | WorkerPaused | WorkerUnpaused


# State


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Worker:
    """A worker: its last session, and whether it is paused, which outlives sessions."""

    id: str
    session: str
    host: str
    pid: int
    started_at: datetime
    updated_at: datetime
    running: bool = True
    paused: bool = False


def evolve(state: Worker | None, event: WorkerEvent) -> Worker:
    """The worker after an event."""
    if isinstance(event, WorkerStarted):
        return Worker(
            id=event.id,
            session=event.session,
            host=event.host,
            pid=event.pid,
            started_at=event.at,
            updated_at=event.at,
            paused=state is not None and state.paused,
        )
    assert state is not None, "a worker begins with WorkerStarted"
    worker = attrs.evolve(state, updated_at=event.at)
    match event:
        case WorkerStopped():
            return attrs.evolve(worker, running=False)
        case WorkerPaused():
            return attrs.evolve(worker, paused=True)
        case WorkerUnpaused():
            return attrs.evolve(worker, paused=False)


# Commands


@attrs.frozen(kw_only=True)
class StartWorker:
    """A process begins to work under this id."""

    id: str
    session: str
    host: str
    pid: int
    at: datetime


@attrs.frozen(kw_only=True)
class StopWorker:
    """The process of a session ends."""

    session: str
    at: datetime


@attrs.frozen(kw_only=True)
class PauseWorker:
    """Pause the worker, or resume it."""

    paused: bool
    at: datetime


WorkerCommand = StartWorker | StopWorker | PauseWorker


def decide(command: WorkerCommand, state: Worker | None) -> Sequence[WorkerEvent]:
    """Return the events that a command causes. Raises NotFound."""
    if isinstance(command, StartWorker):
        return [WorkerStarted(id=command.id, session=command.session, host=command.host, pid=command.pid, at=command.at)]
    if state is None:
        raise NotFound("no such worker")
    match command:
        case StopWorker():
            ours = state.running and state.session == command.session
            return [WorkerStopped(session=command.session, at=command.at)] if ours else []
        case PauseWorker(paused=True):
            return [] if state.paused else [WorkerPaused(at=command.at)]
        case PauseWorker():
            return [WorkerUnpaused(at=command.at)] if state.paused else []


WORKER: Decider[Worker, WorkerCommand, WorkerEvent] = Decider(CATEGORY, decide, evolve, initial=None)
