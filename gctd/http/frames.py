"""Which frames of the event stream a commit on the log makes: one per event, with the resource as it was after that event."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec

from eventlog import Commit, EventLog, Position
from gctd.domain import repo, task, worker
from gctd.domain.repo import REPO, Repo
from gctd.domain.task import TASK, Task, TaskStageReached
from gctd.domain.worker import WORKER, Worker
from gctd.http.bodies import RepoBody, TaskBody
from httpkit.encoding import encode
from httpkit.frames import Frame
from projections.tracker.views import RepoView, TaskView, rfc3339

_DECIDERS = {repo.CATEGORY: REPO, task.CATEGORY: TASK, worker.CATEGORY: WORKER}


class Frames:
    """Makes frames of commits. The log is asked only where a commit holds several events."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def of(self, commits: Sequence[Commit]) -> list[Frame]:
        """The frames of these commits, in order."""
        frames: list[Frame] = []
        for commit in commits:
            events = commit.events
            for event, state in zip(events, await self._states(commit), strict=True):
                name, body = _shown(event.data, state, commit.sequence)
                frames.append(Frame(event.position, name, body))
        return frames

    async def replay(self, after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
        """The frames after a position, up to sequence `until`, from the log."""
        # The commit of the position itself is read again: it may hold later events.
        first = after.sequence - 1 if after.sequence else 0
        async for commits in self._log.follow(after=first, until=until):
            frames = [frame for frame in await self.of(commits) if frame.position > after]
            if frames:
                yield frames

    async def _states(self, commit: Commit) -> Sequence[Any]:
        events, state = commit.events, commit.state
        if len(events) == 1:
            return (state,)
        before = await self._log.last(commit.aggregate, up_to=commit.sequence - 1) if commit.sequence > 1 else None
        decider: Any = _DECIDERS[commit.category]
        states, after = [], None if before is None else before.state
        for event in events:
            after = decider.evolve(after, event.data)
            states.append(after)
        return states


def _shown(event: Any, state: Any, sequence: int) -> tuple[str, bytes]:
    if isinstance(event, TaskStageReached):
        body = {"id": state.id, "attempt": event.attempt, "stage": event.stage, "at": rfc3339(event.at)}
        return "stage", msgspec.json.encode(body)
    if isinstance(state, Task):
        task_body = encode(TaskBody.of(TaskView.of_state(state, sequence)))
        return "task", task_body[:-1] + b',"deleted":true}' if state.deleted else task_body
    if isinstance(state, Repo):
        return "repo", encode(RepoBody.of(RepoView.of_state(state, sequence)))
    assert isinstance(state, Worker)
    return "worker", msgspec.json.encode(state)
