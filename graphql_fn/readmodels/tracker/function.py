"""The function `tracker`: repositories, projects, tasks, analyses and their history, functions by risk; tasks as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import attrs
import msgspec
import structlog

from gctd.broker.blobs import BlobStore
from gctd.domain.task.events import TaskLogStored
from gctd.domain.task.state import Task
from gctd.readmodel import MODEL
from gctd.readmodel.changes import DECIDERS
from gctd.readmodel.reports import Reports
from gctd.readmodel.views import TaskView
from graphql_fn.core.function import Function
from graphql_fn.core.subscribing import SubscriptionEvent
from graphql_fn.readmodels.binding import bound
from graphql_fn.readmodels.following import followed
from graphql_fn.readmodels.tracker.fields import LISTS, NODES, RESOLVERS, SCANS, sizes
from graphql_fn.readmodels.tracker.queries import Info, TrackerAsking
from httpkit import Frame
from servicekit import Broker, CommitFrames, EventChange, ReadReplica

_log = structlog.get_logger(__name__)

TASK = "task"
BLOBS = "gctd-blobs"
"""The bucket of the reports (`streams.yaml`)."""


@attrs.frozen
class TaskChange:
    """The payload of `taskChanged`."""

    task: TaskView
    event: str
    deleted: bool


# Events


def frames(log: Any) -> CommitFrames:
    """The frames of the tracker's commits: one for each event of a task, but for the end of its log."""
    return CommitFrames(log, DECIDERS, _frames)


def _frames(happened: EventChange) -> Iterable[Frame]:
    task, event = happened.after, happened.event
    if isinstance(task, Task) and not isinstance(event.data, TaskLogStored):
        change = TaskChange(TaskView.of_state(task, happened.sequence), event.type, deleted=task.deleted)
        yield Frame(event.position, TASK, msgspec.json.encode(change))


def _changes(_: Any, info: Info, id: str | None = None, repo: str | None = None) -> AsyncIterator[SubscriptionEvent]:  # noqa: A002 - the schema's
    def wanted(change: TaskChange) -> bool:
        return id in {None, change.task.id} and repo in {None, change.task.repo_id}

    return followed(info.context, TASK, TaskChange, wanted)


SCHEMA = bound("tracker/tracker.graphql", RESOLVERS, {"taskChanged": _changes}, lists=LISTS, nodes=NODES)


def replica(url: str, broker: Broker | None, *, max_lag: float) -> ReadReplica:
    """The read model in a database, and its events if there is a broker."""
    return ReadReplica(url, MODEL, connection=broker, frames=frames, max_lag=max_lag)


def function(replica: ReadReplica) -> Function:
    """The function over a read model."""
    reports = None if replica.connection is None else Reports(BlobStore(replica.connection, BLOBS))
    return Function(
        name=MODEL.name,
        schema=SCHEMA,
        context=lambda request: TrackerAsking(replica, reports, request),
        scans=SCANS,
        rows=lambda: sizes(replica),
    )
