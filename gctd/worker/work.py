"""The port between the queue and the work of a worker. Tests can put other work behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from gctd.domain.analysis import Analysis
from gctd.domain.capabilities import Capabilities
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task.events import Progress
from gctd.domain.task.state import Task
from gctd.scan.isolation.output import OnLog


@attrs.frozen(kw_only=True)
class ResolvedRef:
    """A ref and its commit."""

    ref: str
    commit_sha: str


class OnStage(Protocol):
    """Called as the work enters a stage, and with its progress in it: of the tests, or the commit of the ref that it found."""

    async def __call__(self, stage: str, progress: Progress | ResolvedRef | None = None) -> None:
        """Report the stage, or the progress in it."""


class WorkFailed(Exception):
    """The work has no result; the text is for the user. `permanent`: another attempt would end the same."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


@attrs.frozen(kw_only=True)
class Discovered:
    """Result of a discovery: the projects, at a commit of the default branch."""

    commit_sha: str
    default_ref: str
    projects: tuple[Project, ...]


@attrs.frozen(kw_only=True)
class Equipment:
    """The equipment of a worker: engines with their versions, the version of Go, how code of repositories is confined.

    `fetches_go`: it downloads the official toolchain if a module asks for a newer one.
    `platform` is Go's name, as `linux/amd64`.
    """

    engines: Mapping[str, str] = attrs.field(factory=dict)
    go_version: str = ""
    sandbox: str = ""
    fetches_go: bool = False
    platform: str = ""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that jobs are compared with."""
        return Capabilities(engines=frozenset(self.engines), go_version="" if self.fetches_go else self.go_version)


class Work(Protocol):
    """The work. Cancelling it leaves nothing running and nothing behind. Raises WorkFailed."""

    @property
    def equipment(self) -> Equipment:
        """Return the versions and the platform of the work."""

    async def discover(self, repo: Repo) -> Discovered:
        """Find the projects of a repository."""

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """Analyse a project; report and profile are in the blob store when it returns. `on_log` takes lines of its log."""
