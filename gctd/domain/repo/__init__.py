"""The aggregate of a registered repository: registered, its projects discovered by a worker, then ready for analysis."""

from eventlog import Decider
from gctd.domain.repo.commands import RepoCommand, decide
from gctd.domain.repo.events import RepoEvent
from gctd.domain.repo.state import CATEGORY, Repo, evolve

REPO: Decider[Repo, RepoCommand, RepoEvent] = Decider(CATEGORY, decide, evolve, initial=None)
