"""The events of a repository."""

from __future__ import annotations

from datetime import datetime

import attrs

from gctd.domain.registry import REGISTRY
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.repo.project import Project


@REGISTRY.event("RepoRegistered")
@attrs.frozen(kw_only=True)
class RepoRegistered:
    """A repository is known from now on, under the id that its canonical URL gives."""

    id: str
    url: str
    clone_url: str
    max_attempts: int
    at: datetime


@REGISTRY.event("DiscoveryRequested")
@attrs.frozen(kw_only=True)
class DiscoveryRequested:
    """The projects of a known repository are to be found again."""

    at: datetime


@REGISTRY.event("DiscoveryStarted")
@attrs.frozen(kw_only=True)
class DiscoveryStarted:
    """A worker looks for the projects."""

    attempt: int
    worker: str
    session: str
    at: datetime


@REGISTRY.event("DiscoveryAttemptFailed")
@attrs.frozen(kw_only=True)
class DiscoveryAttemptFailed:
    """An attempt failed, or its worker was lost; another follows, not before `retry_at`."""

    attempt: int
    reason: str
    retry_at: datetime
    at: datetime


@REGISTRY.event("RepoReady")
@attrs.frozen(kw_only=True)
class RepoReady:
    """The projects were found, at this commit of the default branch."""

    commit_sha: str
    default_ref: str
    projects: tuple[Project, ...]
    at: datetime


@REGISTRY.event("RepoFailed")
@attrs.frozen(kw_only=True)
class RepoFailed:
    """The projects could not be found; the reason is for the user."""

    reason: str
    at: datetime


@REGISTRY.event("RepoRemoved")
@attrs.frozen(kw_only=True)
class RepoRemoved:
    """The repository is not registered any more: no command but another registration has an effect on it."""

    at: datetime


@REGISTRY.event("ProjectConfigured")
@attrs.frozen(kw_only=True)
class ProjectConfigured:
    """The settings of a project (`subdir`, empty for the root) are these from now on."""

    subdir: str
    config: ProjectConfig
    at: datetime


@REGISTRY.event("ProjectConfigRemoved")
@attrs.frozen(kw_only=True)
class ProjectConfigRemoved:
    """The private settings of a project are removed."""

    subdir: str
    at: datetime


@REGISTRY.event("AnalysisRequested")
@attrs.frozen(kw_only=True)
class AnalysisRequested:
    """These tasks were queued together. `commits`: project to the new commit for which a check for updates queued its task.

    `default_ref` is the new name of the default branch, if a check for updates found one; otherwise empty.
    """

    tasks: tuple[str, ...]
    at: datetime
    commits: dict[str, str] = attrs.field(factory=dict)
    default_ref: str = ""


RepoEvent = (
    RepoRegistered
    | DiscoveryRequested
    | DiscoveryStarted
    | DiscoveryAttemptFailed
    | RepoReady
    | RepoFailed
    | ProjectConfigured
    | ProjectConfigRemoved
    | AnalysisRequested
    | RepoRemoved
)
