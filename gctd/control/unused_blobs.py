"""Removing the reports, profiles and logs that no task refers to. Removed repositories and killed workers leave such bodies.

A body is removed under three conditions. No task has its digest; tasks of removed repositories do not count. No name in use
is linked to it. It is older than the grace period, and older than every running attempt. A worker stores a body before it reports
the body, and storing a body again renews its time. So a body that is about to be reported is always too young.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import structlog

from eventlog import EventLogError
from eventlog.broker.blobs import BlobStore, Removed
from eventlog.jetstream.log import JetStreamLog
from gctd.domain import task
from gctd.domain.analysis import analysis_id
from gctd.domain.task import Task

_log = structlog.get_logger(__name__)

FIRST_AFTER = 60.0
"""Seconds from the start of a leader to its first pass, at most."""
AGAIN = 60.0
"""Seconds from a pass that could not be completed to the next one, at most."""

_DIGEST = re.compile(rb'"([0-9a-f]{64})"')
"""Any digest in a commit of a task, in whichever member: so a member that is new here is not overlooked."""
_NAMED_BY_REPOSITORY = ("coverage", "analyses")
"""The first parts of names whose second part is the id of a repository, or of the analyses of a project."""


class UnusedBlobs:
    """Makes passes over the blob store. `grace` is in seconds."""

    def __init__(self, log: JetStreamLog, blobs: BlobStore, *, grace: float) -> None:
        self._events = log
        self._blobs = blobs
        self._grace = grace

    async def run(self) -> None:
        """Make a pass each grace period until cancelled; errors are logged, and the pass is repeated."""
        pause = min(FIRST_AFTER, self._grace)
        while True:
            await asyncio.sleep(pause)
            pause = self._grace
            try:
                await self.remove()
            except EventLogError as error:
                _log.warning("unused reports and profiles stay for now", error=str(error))
                pause = min(AGAIN, self._grace)

    async def remove(self) -> Removed:
        """Make one pass. Raises Unavailable, and UndecodableCommit if a task cannot be read: in doubt every body stays."""
        before = datetime.now(UTC) - timedelta(seconds=self._grace)
        used, since, ended = set[str](), dict[str, datetime](), set[str]()
        async for commits in self._events.last_of_all(task.CATEGORY):
            for commit in commits:
                known: Task = commit.state
                owners = (known.repo_id, analysis_id(known.repo_id, known.project))
                if known.dropped:
                    ended.update(owners)
                    continue
                used.update(digest.decode() for digest in _DIGEST.findall(commit.data))
                for owner in owners:
                    since[owner] = min(known.created_at, since.get(owner, known.created_at))
                if known.lease is not None:
                    before = min(before, known.lease.since)

        def keeps(name: str, at: datetime) -> bool:
            kind, _, rest = name.partition("/")
            owner = rest.partition("/")[0]
            if kind not in _NAMED_BY_REPOSITORY:
                return True
            return owner in since and (owner not in ended or at >= since[owner])

        removed = await self._blobs.remove_unused(used, keeps=keeps, before=before)
        if removed != Removed():
            _log.info("unused reports and profiles removed", bodies=removed.bodies, bytes=removed.size, names=removed.names)
        return removed
