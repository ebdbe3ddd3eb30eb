"""A task of a test as it is queued."""

from __future__ import annotations

from datetime import datetime

from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task.events import TaskQueued


def queued_task(at: datetime, id_: str = "task-1", *, repo_id: str = "r1", repo_url: str = "https://example.com/a") -> TaskQueued:
    """A task of the root project on `main` that may have three attempts."""
    return TaskQueued(
        id=id_,
        repo_id=repo_id,
        repo_url=repo_url,
        clone_url=repo_url,
        project=".",
        ref="main",
        engine="native",
        max_attempts=3,
        config=ProjectConfig(),
        at=at,
    )
