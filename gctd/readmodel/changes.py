"""The deciders of the tracker's log, for readers that follow its aggregates."""

from __future__ import annotations

from typing import Any

from eventlog import Decider
from gctd.domain.delivery import DELIVERY
from gctd.domain.repo import REPO
from gctd.domain.schedule import SCHEDULE
from gctd.domain.task import TASK
from gctd.domain.verdict import VERDICT
from gctd.domain.worker import WORKER

DECIDERS: dict[str, Decider[Any, Any, Any]] = {
    decider.category: decider for decider in (DELIVERY, REPO, SCHEDULE, TASK, VERDICT, WORKER)
}
