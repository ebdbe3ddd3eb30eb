"""What a worker does with a job: the port between the queue and the work itself, so that tests can put other work behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import attrs

from gctd.domain.analysis import Analysis
from gctd.domain.project import Project
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.scan.isolation.output import OnLog

OnStage = Callable[[str], Awaitable[None]]
"""Called as the work enters a stage."""


class WorkFailed(Exception):
    """The work has no result; the text is for the user. `permanent`: another attempt would end the same."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


@attrs.frozen(kw_only=True)
class Discovered:
    """What a discovery found: the projects, at a commit of the default branch."""

    commit_sha: str
    default_ref: str
    projects: tuple[Project, ...]


@attrs.frozen(kw_only=True)
class Equipment:
    """What work is done with: engines with their versions, the version of Go, how code of repositories is confined."""

    engines: Mapping[str, str] = attrs.field(factory=dict)
    go_version: str = ""
    sandbox: str = ""


class Work(Protocol):
    """The work. Cancelling it leaves nothing running and nothing behind. Raises WorkFailed."""

    @property
    def equipment(self) -> Equipment:
        """What it is done with."""

    async def discover(self, repo: Repo) -> Discovered:
        """Find the projects of a repository."""

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """Analyse a project; report and profile are in the blob store when it returns. `on_log` takes lines of its log."""
