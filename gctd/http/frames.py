"""Which frames of the event stream an event makes: one, with the resource as it was after that event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from eventlog import EventLog
from gctd.domain.repo import Repo
from gctd.domain.task import Task, TaskLogStored, TaskStageReached
from gctd.domain.worker import Worker
from gctd.http.bodies import RepoBody, TaskBody
from gctd.readmodel.changes import DECIDERS
from gctd.readmodel.views import RepoView, TaskView
from httpkit.messages.encoding import encode
from httpkit.sse.frames import Frame
from projections.model import timestamp_text
from servicekit.feed import CommitFrames, EventChange


def frames(log: EventLog) -> CommitFrames:
    """The frames of the tracker's commits."""
    return CommitFrames(log, DECIDERS, _frames)


def _frames(happened: EventChange) -> Iterable[Frame]:
    name, body = _shown(happened.event.data, happened.after, happened.sequence)
    return (Frame(happened.event.position, name, body),)


def _shown(event: Any, state: Any, sequence: int) -> tuple[str, bytes]:
    if isinstance(event, TaskStageReached):
        body = {"id": state.id, "attempt": event.attempt, "stage": event.stage, "at": timestamp_text(event.at)}
        return "stage", msgspec.json.encode(body)
    if isinstance(event, TaskLogStored):
        body = {
            "id": state.id,
            "attempt": event.attempt,
            "size": event.log.size,
            "cut": event.log.cut,
            "at": timestamp_text(event.at),
        }
        return "log", msgspec.json.encode(body)
    if isinstance(state, Task):
        task_body = encode(TaskBody.of(TaskView.of_state(state, sequence)))
        return "task", task_body[:-1] + b',"deleted":true}' if state.deleted else task_body
    if isinstance(state, Repo):
        return "repo", encode(RepoBody.of(RepoView.of_state(state, sequence)))
    assert isinstance(state, Worker)
    return "worker", msgspec.json.encode(state)
