"""Frames of the event stream: an event makes one, with the resource after that event. `EVENTS` describes their data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gctd.domain.delivery.state import Delivery
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.schedule import Schedule
from gctd.domain.task.events import TaskLogStored, TaskProgressed, TaskStageReached
from gctd.domain.task.state import Task
from gctd.domain.verdict import Verdict
from gctd.domain.worker import Worker
from gctd.http.bodies import ProgressBody, RepoBody, TaskBody, body_of
from gctd.readmodel.views import RepoView, TaskView
from httpkit import OF_EVERY_STREAM, UNSET, Frame, Unset, encode, member, message
from projections import timestamp_text
from servicekit import EventChange


@message
class TaskChanged(TaskBody):
    """A task as it was after an event."""

    deleted: bool | Unset = member(default=UNSET, description="true: the task was removed; otherwise it is left out")


@message
class RepoChanged(RepoBody):
    """A repository as it was after an event."""

    deleted: bool | Unset = member(default=UNSET, description="true: the repository was removed; otherwise it is left out")


@message
class StageBody:
    """A running attempt entered a stage, or its tests progressed."""

    id: str = member(description="the task")
    attempt: int = member()
    stage: str = member(description="clone, modules, test, analyse or store")
    progress: ProgressBody | Unset = member(default=UNSET, description="of tests, as far as it is known")
    at: str = member(description="RFC 3339, UTC")


@message
class LogStoredBody:
    """The log of an attempt is stored."""

    id: str = member(description="the task")
    attempt: int = member()
    size: int = member(description="bytes")
    cut: int = member(description="bytes that were left out of its middle; 0 if it is complete")
    at: str = member(description="RFC 3339, UTC")


@message
class VerdictChanged:
    """A verdict was asked for or given."""

    id: str = member()
    analysis_id: str = member()
    commit_sha: str = member()
    base: str = member(description="branch, tag, commit or analysis that was compared with")
    base_commit: str = member()
    result: str = member(description="passed, failed, or unknown until it is given")


@message
class DeliveryChanged:
    """A delivery of a webhook took a step."""

    id: str = member()
    repo_url: str = member()
    commit_sha: str = member()
    status: str = member()
    state: str = member(description="the result for the forge; empty before it is decided")
    reported: bool = member(description="the forge has all of it")
    reason: str = member()


@message
class UpdatesChecked:
    """A scheduled check for updates began or ended."""

    round: int = member()
    server: str = member(description="the process that checks")
    begun_at: datetime = member()
    ended_at: datetime | None = member(description="null until the round ends; before, the figures are 0")
    projects: int = member()
    scheduled: int = member()
    failed: int = member()


@message
class WorkerChanged:
    """A worker started, stopped, was paused or unpaused."""

    id: str = member()
    session: str = member(description="names the process")
    host: str = member()
    pid: int = member()
    started_at: datetime = member()
    updated_at: datetime = member()
    running: bool = member()
    paused: bool = member()


EVENTS: Mapping[str, type] = {
    "task": TaskChanged,
    "stage": StageBody,
    "log": LogStoredBody,
    "repo": RepoChanged,
    "verdict": VerdictChanged,
    "delivery": DeliveryChanged,
    "updates": UpdatesChecked,
    "worker": WorkerChanged,
    **OF_EVERY_STREAM,
}
"""The classes of the data, by the names of the events on the wire."""


def show(change: EventChange) -> Iterable[Frame]:
    """The frame of an event."""
    name, body = _shown(change.event.data, change.after, change.sequence)
    return (Frame(change.event.position, name, encode(body)),)


def _shown(event: Any, state: Any, sequence: int) -> tuple[str, Any]:
    match event:
        case TaskStageReached():
            return "stage", StageBody(id=state.id, attempt=event.attempt, stage=event.stage, at=timestamp_text(event.at))
        case TaskProgressed():
            progress, at = body_of(ProgressBody, event.progress), timestamp_text(event.at)
            return "stage", StageBody(id=state.id, attempt=event.attempt, stage=state.stage, progress=progress, at=at)
        case TaskLogStored(log=log):
            at = timestamp_text(event.at)
            return "log", LogStoredBody(id=state.id, attempt=event.attempt, size=log.size, cut=log.cut, at=at)
    match state:
        case Task():
            return "task", TaskChanged.of(TaskView.of_state(state, sequence), deleted=state.deleted or UNSET)
        case Repo():
            deleted = state.status is RepoStatus.REMOVED or UNSET
            return "repo", RepoChanged.of(RepoView.of_state(state, sequence), deleted=deleted)
        case Verdict():
            return "verdict", body_of(VerdictChanged, state)
        case Delivery():
            return "delivery", body_of(DeliveryChanged, state)
        case Schedule():
            return "updates", body_of(UpdatesChecked, state)
    assert isinstance(state, Worker)
    return "worker", body_of(WorkerChanged, state)
