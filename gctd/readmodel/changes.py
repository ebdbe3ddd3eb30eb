"""The deciders of the tracker's log, for whoever follows what happens to its aggregates."""

from __future__ import annotations

from typing import Any

from eventlog import Decider
from gctd.domain import repo, task, worker
from gctd.domain.repo import REPO
from gctd.domain.task import TASK
from gctd.domain.worker import WORKER

DECIDERS: dict[str, Decider[Any, Any, Any]] = {repo.CATEGORY: REPO, task.CATEGORY: TASK, worker.CATEGORY: WORKER}
