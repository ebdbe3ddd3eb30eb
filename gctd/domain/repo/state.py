"""The state of a repository, and its state after an event."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import attrs

from gctd.domain.lease import Lease
from gctd.domain.registry import REGISTRY
from gctd.domain.repo import events
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.repo.project import Project

CATEGORY = "gctd.repo"


class RepoStatus(StrEnum):
    """The states of a repository."""

    REGISTERING = "registering"
    READY = "ready"
    ERROR = "error"
    REMOVED = "removed"


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Repo:
    """A repository. `attempt` counts the attempts of the current discovery; `requested` is the time of its last request.

    `requests` counts the requests for analyses. `checked` is, by project, the commit for which a check for updates last
    queued a task.
    """

    id: str
    url: str
    clone_url: str
    status: RepoStatus
    max_attempts: int
    created_at: datetime
    updated_at: datetime
    requested: datetime
    reason: str = ""
    commit_sha: str = ""
    default_ref: str = ""
    profiled_at: datetime | None = None
    projects: tuple[Project, ...] = ()
    attempt: int = 0
    lease: Lease | None = None
    retry_at: datetime | None = None
    configs: dict[str, ProjectConfig] = attrs.field(factory=dict)
    requests: int = 0
    checked: dict[str, str] = attrs.field(factory=dict)


def evolve(state: Repo | None, event: events.RepoEvent) -> Repo:
    """The repository after an event."""
    if isinstance(event, events.RepoRegistered):
        return Repo(
            id=event.id,
            url=event.url,
            clone_url=event.clone_url,
            status=RepoStatus.REGISTERING,
            max_attempts=event.max_attempts,
            created_at=event.at,
            updated_at=event.at,
            requested=event.at,
        )
    assert state is not None, "a repository begins with RepoRegistered"
    repo = attrs.evolve(state, updated_at=event.at)
    match event:
        case events.DiscoveryRequested():
            return attrs.evolve(
                repo, status=RepoStatus.REGISTERING, reason="", attempt=0, lease=None, retry_at=None, requested=event.at
            )
        case events.DiscoveryStarted():
            lease = Lease(worker=event.worker, session=event.session, since=event.at)
            return attrs.evolve(repo, attempt=event.attempt, lease=lease, retry_at=None)
        case events.DiscoveryAttemptFailed():
            return attrs.evolve(repo, lease=None, retry_at=event.retry_at)
        case events.RepoReady():
            return attrs.evolve(
                repo,
                status=RepoStatus.READY,
                reason="",
                commit_sha=event.commit_sha,
                default_ref=event.default_ref,
                projects=event.projects,
                profiled_at=event.at,
                lease=None,
            )
        case events.RepoFailed():
            return attrs.evolve(repo, status=RepoStatus.ERROR, reason=event.reason, lease=None, retry_at=None)
        case events.ProjectConfigured():
            return attrs.evolve(repo, configs={**repo.configs, event.subdir: event.config})
        case events.ProjectConfigRemoved():
            return attrs.evolve(repo, configs={k: v for k, v in repo.configs.items() if k != event.subdir})
        case events.AnalysisRequested():
            checked = {**repo.checked, **event.commits}
            return attrs.evolve(
                repo, requests=repo.requests + 1, checked=checked, default_ref=event.default_ref or repo.default_ref
            )
        case events.RepoRemoved():
            return attrs.evolve(repo, status=RepoStatus.REMOVED, reason="", lease=None, retry_at=None)
