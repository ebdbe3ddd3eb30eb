"""Jobs: which ones the log asks for. The queue is derived from the log, never the truth (DESIGN, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs
import msgspec

from eventlog import Commit, Context, Decider
from eventlog.broker.job import Job
from gctd.domain import repo, task
from gctd.domain.registry import REGISTRY

STREAM = "crap_jobs_scan"
CONSUMER = "crap-workers"
MOST_CARRIED = 16_384
"""Bytes that a commit may have to go with its job."""


class JobKind(StrEnum):
    """What a job is about; with the aggregate's id it makes the subject `crap.jobs.<kind>.<id>`."""

    DISCOVER = "discover"
    SCAN = "scan"


_NO_COMMIT = msgspec.Raw(b"null")
_DECIDERS: Mapping[str, Decider[Any, Any, Any]] = {JobKind.DISCOVER: repo.REPO, JobKind.SCAN: task.TASK}


@attrs.frozen
class JobTicket:
    """A job to be put in the queue: `dedupe` is the same however often the same event asks for it."""

    kind: JobKind
    id: str
    dedupe: str
    payload: bytes


class _Payload(msgspec.Struct, omit_defaults=True):
    sequence: int
    correlation: str | None = None
    causation: str | None = None
    traceparent: str | None = None
    commit: msgspec.Raw = _NO_COMMIT


@attrs.frozen
class JobRequest:
    """What a job says beside its subject: the context in which it was asked for and, if it tells, the commit that did."""

    context: Context = attrs.field(factory=Context)
    commit: Commit | None = None


def ticket(kind: JobKind, id_: str, sequence: int, context: Context, commit: Commit | None = None) -> JobTicket:
    """The job that the commit at that sequence asks for, in the context of what it leads to.

    A small commit goes with it, so that the worker need not read it; everything else it reads from the log.
    """
    carried = msgspec.Raw(commit.data) if commit is not None and len(commit.data) <= MOST_CARRIED else _NO_COMMIT
    payload = _Payload(sequence, context.correlation, context.causation, context.traceparent, carried)
    return JobTicket(kind, id_, f"{kind}:{id_}:{sequence}", msgspec.json.encode(payload))


def asked_by(job: Job) -> JobRequest:
    """What a job's payload says; nothing where it cannot be read."""
    try:
        asked = msgspec.json.decode(job.payload, type=_Payload)
    except msgspec.DecodeError:
        return JobRequest()
    context = Context(correlation=asked.correlation, causation=asked.causation, traceparent=asked.traceparent)
    decider = _DECIDERS.get(job.kind)
    if decider is None or asked.commit == _NO_COMMIT:
        return JobRequest(context)
    return JobRequest(context, Commit(asked.sequence, decider.aggregate(job.id).subject, bytes(asked.commit), REGISTRY))


def wanted(commit: Commit) -> JobTicket | None:
    """The job that a commit asks for: none where the aggregate does not wait for a worker, or waits with a job in hand.

    After a failed attempt the worker hands its job back with a delay; only where the next attempt is due at once
    (its worker is gone) a new job is asked for.
    """
    if all(event.type not in _ASKING for event in commit.body.events):
        return None
    state = commit.state
    due = state.retry_at is None or state.retry_at <= commit.at
    if isinstance(state, repo.Repo) and state.status is repo.RepoStatus.REGISTERING and state.lease is None and due:
        return ticket(JobKind.DISCOVER, state.id, commit.sequence, commit.consequence, commit)
    if isinstance(state, task.Task) and state.status.waiting and not state.deleted and due:
        return ticket(JobKind.SCAN, state.id, commit.sequence, commit.consequence, commit)
    return None


_ASKING = frozenset(
    {"RepoRegistered", "DiscoveryRequested", "DiscoveryAttemptFailed", "TaskQueued", "TaskAttemptLost", "TaskRetried"}
)
