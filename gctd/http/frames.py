"""Frames of the event stream: an event makes one, with the resource after that event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import msgspec

from gctd.domain.delivery.state import Delivery
from gctd.domain.repo.state import Repo, RepoStatus
from gctd.domain.schedule import Schedule
from gctd.domain.task.events import TaskLogStored, TaskProgressed, TaskStageReached
from gctd.domain.task.state import Task
from gctd.domain.verdict import Verdict
from gctd.domain.worker import Worker
from gctd.http.bodies import RepoBody, TaskBody
from gctd.readmodel.views import RepoView, TaskView
from httpkit.messages.encoding import encode
from httpkit.sse.frames import Frame
from projections.model import timestamp_text
from servicekit.feed import EventChange


def show(happened: EventChange) -> Iterable[Frame]:
    """The frame of an event."""
    name, body = _shown(happened.event.data, happened.after, happened.sequence)
    return (Frame(happened.event.position, name, body),)


def _shown(event: Any, state: Any, sequence: int) -> tuple[str, bytes]:
    if isinstance(event, TaskStageReached):
        body = {"id": state.id, "attempt": event.attempt, "stage": event.stage, "at": timestamp_text(event.at)}
        return "stage", msgspec.json.encode(body)
    if isinstance(event, TaskProgressed):
        progress = attrs.asdict(event.progress)
        told = {
            "id": state.id,
            "attempt": event.attempt,
            "stage": state.stage,
            "progress": progress,
            "at": timestamp_text(event.at),
        }
        return "stage", msgspec.json.encode(told)
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
        repo_body = encode(RepoBody.of(RepoView.of_state(state, sequence)))
        return "repo", repo_body[:-1] + b',"deleted":true}' if state.status is RepoStatus.REMOVED else repo_body
    if isinstance(state, Verdict):
        return "verdict", msgspec.json.encode(
            {
                "id": state.id,
                "analysis_id": state.analysis_id,
                "commit_sha": state.commit_sha,
                "base": state.base,
                "base_commit": state.base_commit,
                "result": state.result,
            }
        )
    if isinstance(state, Delivery):
        body = {"id": state.id, "repo_url": state.repo_url, "commit_sha": state.commit_sha, "status": state.status}
        return "delivery", msgspec.json.encode({**body, "state": state.state, "reported": state.reported, "reason": state.reason})
    if isinstance(state, Schedule):
        return "updates", msgspec.json.encode(state)
    assert isinstance(state, Worker)
    return "worker", msgspec.json.encode(state)
