"""The aggregate of a registered repository: registered, its projects discovered by a worker, then ready for analysis."""

from eventlog import Decider
from gctd.domain.repo.commands import (
    ConfigureProject,
    FailDiscovery,
    FinishDiscovery,
    LoseDiscovery,
    RegisterRepo,
    RemoveProjectConfig,
    RemoveRepo,
    RepoCommand,
    RequestAnalysis,
    StartDiscovery,
    decide,
)
from gctd.domain.repo.events import (
    AnalysisRequested,
    DiscoveryAttemptFailed,
    DiscoveryRequested,
    DiscoveryStarted,
    ProjectConfigRemoved,
    ProjectConfigured,
    RepoEvent,
    RepoFailed,
    RepoReady,
    RepoRegistered,
    RepoRemoved,
)
from gctd.domain.repo.state import (
    CATEGORY,
    Repo,
    RepoStatus,
    evolve,
)

REPO: Decider[Repo, RepoCommand, RepoEvent] = Decider(CATEGORY, decide, evolve)

__all__ = [
    "CATEGORY",
    "REPO",
    "AnalysisRequested",
    "ConfigureProject",
    "DiscoveryAttemptFailed",
    "DiscoveryRequested",
    "DiscoveryStarted",
    "FailDiscovery",
    "FinishDiscovery",
    "LoseDiscovery",
    "ProjectConfigRemoved",
    "ProjectConfigured",
    "RegisterRepo",
    "RemoveProjectConfig",
    "RemoveRepo",
    "Repo",
    "RepoCommand",
    "RepoEvent",
    "RepoFailed",
    "RepoReady",
    "RepoRegistered",
    "RepoRemoved",
    "RepoStatus",
    "RequestAnalysis",
    "StartDiscovery",
    "decide",
    "evolve",
]
