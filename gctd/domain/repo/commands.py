"""The commands of a repository, and the events that each causes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from gctd.domain.errors import NotFound, Overtaken, Refused
from gctd.domain.lease import fence
from gctd.domain.repo import events
from gctd.domain.repo.config import ROOT, ProjectConfig, require_configurable
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo, RepoStatus


@attrs.frozen(kw_only=True)
class RegisterRepo:
    """Register a repository. If it is registered and in error, or `refresh` is set, search for its projects again."""

    id: str
    url: str
    clone_url: str
    max_attempts: int
    at: datetime
    refresh: bool = False


@attrs.frozen(kw_only=True)
class StartDiscovery:
    """A worker starts the search for projects."""

    worker: str
    session: str
    at: datetime


@attrs.frozen(kw_only=True)
class FinishDiscovery:
    """A worker reports what it found."""

    attempt: int
    session: str
    commit_sha: str
    default_ref: str
    projects: tuple[Project, ...]
    at: datetime


@attrs.frozen(kw_only=True)
class FailDiscovery:
    """A worker reports why it found nothing; `permanent`: another attempt would end the same."""

    attempt: int
    session: str
    reason: str
    permanent: bool
    retry_at: datetime
    at: datetime


@attrs.frozen(kw_only=True)
class LoseDiscovery:
    """The worker of this attempt is lost. `final`: no worker took the job in time."""

    attempt: int
    reason: str
    at: datetime
    final: bool = False


@attrs.frozen(kw_only=True)
class ConfigureProject:
    """Set the values in `changes` and remove the names in `without`. Other settings stay."""

    subdir: str
    changes: ProjectConfig
    at: datetime
    without: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class RemoveProjectConfig:
    """Forget a project's settings."""

    subdir: str
    at: datetime


@attrs.frozen(kw_only=True)
class RequestAnalysis:
    """Queue these tasks. `ref` becomes the root's setting if it is given.

    `commits` and `default_ref` as in AnalysisRequested. `requests`: the known number of requests. The command is refused if the
    repository has more, because the caller then does not know all tasks.
    """

    tasks: tuple[str, ...]
    at: datetime
    ref: str | None = None
    commits: dict[str, str] = attrs.field(factory=dict)
    default_ref: str = ""
    requests: int | None = None


@attrs.frozen(kw_only=True)
class RemoveRepo:
    """End the registration of a repository."""

    at: datetime


RepoCommand = (
    RegisterRepo
    | StartDiscovery
    | FinishDiscovery
    | FailDiscovery
    | LoseDiscovery
    | ConfigureProject
    | RemoveProjectConfig
    | RequestAnalysis
    | RemoveRepo
)


def decide(command: RepoCommand, state: Repo | None) -> Sequence[events.RepoEvent]:
    """Return the events that a command causes. Raises NotFound, Refused."""
    if isinstance(command, RegisterRepo):
        return _register(command, state)
    if state is None or state.status is RepoStatus.REMOVED:
        raise NotFound("the repository is not registered: register it first")
    match command:
        case RemoveRepo():
            return [events.RepoRemoved(at=command.at)]
        case StartDiscovery():
            return _start(command, state)
        case FinishDiscovery():
            _fence(state, command.attempt, command.session)
            return [
                events.RepoReady(
                    commit_sha=command.commit_sha,
                    default_ref=command.default_ref,
                    projects=command.projects,
                    at=command.at,
                )
            ]
        case FailDiscovery():
            _fence(state, command.attempt, command.session)
            return _failed(state, command.reason, permanent=command.permanent, retry_at=command.retry_at, at=command.at)
        case LoseDiscovery():
            return _lost(command, state)
        case ConfigureProject():
            require_configurable(state, command.subdir)
            return _configure(state, command.subdir, command.changes, command.at, without=command.without)
        case RemoveProjectConfig():
            require_configurable(state, command.subdir)
            return [events.ProjectConfigRemoved(subdir=command.subdir, at=command.at)] if command.subdir in state.configs else []
        case RequestAnalysis():
            if command.requests not in (None, state.requests):
                raise Overtaken(f"another analysis of {state.url} was requested since")
            changes = ProjectConfig(ref=command.ref)
            return [
                *_configure(state, ROOT, changes, command.at),
                events.AnalysisRequested(
                    tasks=command.tasks, commits=command.commits, default_ref=command.default_ref, at=command.at
                ),
            ]


def _register(command: RegisterRepo, state: Repo | None) -> Sequence[events.RepoEvent]:
    if state is None or state.status is RepoStatus.REMOVED:
        return [
            events.RepoRegistered(
                id=command.id,
                url=command.url,
                clone_url=command.clone_url,
                max_attempts=command.max_attempts,
                at=command.at,
            )
        ]
    if state.status is RepoStatus.ERROR or (command.refresh and state.status is RepoStatus.READY):
        return [events.DiscoveryRequested(at=command.at)]
    return []


def _start(command: StartDiscovery, state: Repo) -> Sequence[events.RepoEvent]:
    if state.status is not RepoStatus.REGISTERING or state.lease is not None:
        raise Refused("no discovery is waiting")
    if state.retry_at is not None and command.at < state.retry_at:
        raise Refused(f"the next attempt is not before {state.retry_at.isoformat()}")
    return [events.DiscoveryStarted(attempt=state.attempt + 1, worker=command.worker, session=command.session, at=command.at)]


def _lost(command: LoseDiscovery, state: Repo) -> Sequence[events.RepoEvent]:
    if state.status is not RepoStatus.REGISTERING or state.attempt != command.attempt:
        return []
    if not command.final and state.lease is None:
        return []
    return _failed(state, command.reason, permanent=command.final, retry_at=command.at, at=command.at)


def _failed(state: Repo, reason: str, *, permanent: bool, retry_at: datetime, at: datetime) -> Sequence[events.RepoEvent]:
    if permanent or state.attempt >= state.max_attempts:
        return [events.RepoFailed(reason=reason, at=at)]
    return [events.DiscoveryAttemptFailed(attempt=state.attempt, reason=reason, retry_at=retry_at, at=at)]


def _configure(
    state: Repo, subdir: str, changes: ProjectConfig, at: datetime, *, without: frozenset[str] = frozenset()
) -> Sequence[events.RepoEvent]:
    before = state.configs.get(subdir, ProjectConfig())
    after = before.merged(changes, without=without)
    if after == before:
        return []
    if after == ProjectConfig():
        return [events.ProjectConfigRemoved(subdir=subdir, at=at)]
    return [events.ProjectConfigured(subdir=subdir, config=after, at=at)]


def _fence(state: Repo, attempt: int, session: str) -> None:
    fence("discovery", state.lease, state.attempt, by_attempt=attempt, by_session=session)
