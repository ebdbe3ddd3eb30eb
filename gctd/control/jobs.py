"""Jobs: which ones the log asks for. The queue is derived from the log, never the truth (docs/explanation/tracker.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import attrs
import msgspec

from eventlog import AggregateId, Commit, Context, Decider
from gctd.broker.job import Job
from gctd.domain.capabilities import Needs
from gctd.domain.registry import REGISTRY
from gctd.domain.repo import REPO
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.task import TASK
from gctd.domain.task.state import Task

MOST_CARRIED = 16_384
"""Bytes that a commit may have to go with its job."""


class JobKind(StrEnum):
    """The kind of a job. With the aggregate's id it makes the end of the job's subject, `<kind>.<id>`."""

    DISCOVER = "discover"
    SCAN = "scan"


_NO_COMMIT = msgspec.Raw(b"null")
_DECIDERS: Mapping[str, Decider[Any, Any, Any]] = {JobKind.DISCOVER: REPO, JobKind.SCAN: TASK}


def aggregate_of(kind: JobKind, id_: str) -> AggregateId:
    """The aggregate that asks for the job of this kind and id."""
    return _DECIDERS[kind].aggregate(id_)


@attrs.frozen
class JobTicket:
    """A job to be put in a queue: `dedupe` is the same however often the same event asks for it.

    `sequence` is the position of that event. `repo` is the id of the repository, `fast` is true for short jobs, `needs` are the
    capabilities that a worker must have. `blocked` is the reason that the task has in the log for which no worker can run it.
    `context` is the context of the event's consequences.
    """

    kind: JobKind
    id: str
    dedupe: str
    payload: bytes
    sequence: int
    repo: str
    fast: bool
    needs: Needs = attrs.field(factory=Needs)
    blocked: str = ""
    context: Context = attrs.field(factory=Context, eq=False)


class _Payload(msgspec.Struct, omit_defaults=True):
    sequence: int
    correlation: str | None = None
    causation: str | None = None
    traceparent: str | None = None
    commit: msgspec.Raw = _NO_COMMIT
    engine: str = ""
    go: str = ""


@attrs.frozen
class JobRequest:
    """The payload of a job: the context of its request, and the commit that requested it, if it is known.

    `needs` are the capabilities that the worker must have.
    """

    context: Context = attrs.field(factory=Context)
    commit: Commit | None = None
    needs: Needs = attrs.field(factory=Needs)


def ticket(state: Repo | Task, sequence: int, context: Context, commit: Commit | None = None) -> JobTicket:
    """The job that the commit at that sequence asks for, in the context of its consequences. `state` is the state after it.

    A small commit goes with it, so that the worker need not read it; everything else it reads from the log.
    """
    carried = msgspec.Raw(commit.data) if commit is not None and len(commit.data) <= MOST_CARRIED else _NO_COMMIT
    if isinstance(state, Repo):
        kind, of, fast, needs, blocked = JobKind.DISCOVER, state.id, True, Needs(), ""
    else:
        kind, of, fast, needs = JobKind.SCAN, state.repo_id, state.without_tests, state.needs
        blocked = state.reason if state.blocked else ""
    payload = _Payload(
        sequence, context.correlation, context.causation, context.traceparent, carried, engine=needs.engine, go=needs.go
    )
    dedupe = f"{kind}:{state.id}:{sequence}"
    return JobTicket(kind, state.id, dedupe, msgspec.json.encode(payload), sequence, of, fast, needs, blocked, context)


def asked_by(job: Job) -> JobRequest:
    """Decode the payload of a job. An unreadable payload gives an empty request."""
    try:
        asked = msgspec.json.decode(job.payload, type=_Payload)
    except msgspec.DecodeError:
        return JobRequest()
    context = Context(correlation=asked.correlation, causation=asked.causation, traceparent=asked.traceparent)
    needs = Needs(engine=asked.engine, go=asked.go)
    decider = _DECIDERS.get(job.kind)
    if decider is None or asked.commit == _NO_COMMIT:
        return JobRequest(context, needs=needs)
    return JobRequest(context, Commit(asked.sequence, decider.aggregate(job.id).subject, bytes(asked.commit), REGISTRY), needs)


def wanted(commit: Commit) -> JobTicket | None:
    """Return the job for a commit: None if the aggregate does not wait for a worker, or waits with an existing job.

    After a failed attempt the worker returns its job with a delay. A new job is necessary only if the next attempt is due at
    once, because its worker is lost.
    """
    if all(event.type not in _ASKING for event in commit.body.events):
        return None
    return due(commit, commit.at, carried=commit)


def due(commit: Commit, at: datetime, *, carried: Commit | None = None) -> JobTicket | None:
    """The job of an aggregate whose last commit this is, if it waits for a worker and is due at that time."""
    state = commit.state
    is_due = state.retry_at is None or state.retry_at <= at
    return ticket(state, commit.sequence, commit.consequence, carried) if is_due and waits(state) else None


def waits(state: Any) -> bool:
    """Whether an aggregate waits for a worker."""
    if isinstance(state, Repo):
        return state.status is RepoStatus.REGISTERING and state.lease is None
    return isinstance(state, Task) and state.status.waiting and not state.deleted


_ASKING = frozenset(
    {
        *("RepoRegistered", "DiscoveryRequested", "DiscoveryAttemptFailed"),
        *("TaskQueued", "TaskAttemptLost", "TaskRetried", "TaskBlocked", "TaskUnblocked"),
    }
)
