"""Jobs: which ones the log asks for. The queue is derived from the log, never the truth (DESIGN, section 6)."""

from __future__ import annotations

from enum import StrEnum

import attrs
import msgspec

from eventlog import Commit
from gctd.domain import repo, task

STREAM = "crap_jobs_scan"
CONSUMER = "crap-workers"


class JobKind(StrEnum):
    """What a job is about; with the aggregate's id it makes the subject `crap.jobs.<kind>.<id>`."""

    DISCOVER = "discover"
    SCAN = "scan"


@attrs.frozen
class JobTicket:
    """A job to be put in the queue: `dedupe` is the same however often the same event asks for it."""

    kind: JobKind
    id: str
    dedupe: str
    payload: bytes


def ticket(kind: JobKind, id_: str, sequence: int) -> JobTicket:
    """The job that the commit at that sequence asks for. The worker reads everything else from the log."""
    return JobTicket(kind, id_, f"{kind}:{id_}:{sequence}", msgspec.json.encode({"sequence": sequence}))


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
        return ticket(JobKind.DISCOVER, state.id, commit.sequence)
    if isinstance(state, task.Task) and state.status.waiting and not state.deleted and due:
        return ticket(JobKind.SCAN, state.id, commit.sequence)
    return None


_ASKING = frozenset({"RepoRegistered", "DiscoveryRequested", "DiscoveryAttemptFailed", "TaskQueued", "TaskAttemptLost"})
