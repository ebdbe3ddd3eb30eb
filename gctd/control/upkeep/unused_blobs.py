"""Removing the reports, profiles and logs that no task refers to. Removed repositories and killed workers leave such bodies.

A body is removed under three conditions. Neither a task nor a list of kept source of a task has its digest; tasks of removed
repositories do not count. No name in use is linked to it. It is older than the grace period, and older than every running
attempt. A worker stores a body before it reports the body, and storing a body again renews its time. So a body that is about to
be reported is always too young.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import attrs
import structlog

from eventlog import BlobMissing, EventLogError
from eventlog.jetstream import JetStreamLog
from gctd.broker.blobs import BlobStore, Removed
from gctd.domain.analysis import analysis_id
from gctd.domain.task import TASK
from gctd.domain.task.state import Task

_log = structlog.get_logger(__name__)

FIRST_AFTER = 60.0
"""Seconds from the start of a leader to its first pass, at most."""
AGAIN = 60.0
"""Seconds from a pass that could not be completed to the next one, at most."""

_DIGEST = re.compile(rb'"([0-9a-f]{64})"')
"""Any digest in a commit of a task, or in a list of source files, in whichever member: so a new member is not overlooked."""
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
        references = _References(before=datetime.now(UTC) - timedelta(seconds=self._grace))
        async for commits in self._events.last_of_all(TASK.category):
            for commit in commits:
                references.add(commit.state, commit.data)
        for digest in references.lists:
            with contextlib.suppress(BlobMissing):  # then no page can show its files
                references.used.update(_digests(await self._blobs.get(digest)))
        removed = await self._blobs.remove_unused(references.used, keeps=references.keep, before=references.before)
        if removed != Removed():
            _log.info("unused reports and profiles removed", bodies=removed.bodies, bytes=removed.size, names=removed.names)
        return removed


@attrs.define
class _References:
    """The digests in use, and the owners of names: repositories and projects.

    `before` is the time before which an unused body is removed. `lists` are the digests of lists of kept source. `since` is the
    time of the first task by owner, `ended` are owners with tasks of a removed repository.
    """

    before: datetime
    used: set[str] = attrs.field(factory=set)
    lists: set[str] = attrs.field(factory=set)
    since: dict[str, datetime] = attrs.field(factory=dict)
    ended: set[str] = attrs.field(factory=set)

    def add(self, known: Task, commit: bytes) -> None:
        """Add the references of a task, whose last commit has these bytes."""
        owners = (known.repo_id, analysis_id(known.repo_id, known.project))
        if known.dropped:
            self.ended.update(owners)
            return
        self.used.update(_digests(commit))
        if known.analysis is not None and known.analysis.sources is not None:
            self.lists.add(known.analysis.sources.digest)
        for owner in owners:
            self.since[owner] = min(known.created_at, self.since.get(owner, known.created_at))
        if known.lease is not None:
            self.before = min(self.before, known.lease.since)

    def keep(self, name: str, at: datetime) -> bool:
        """Whether a name of this time is in use."""
        kind, _, rest = name.partition("/")
        owner = rest.partition("/")[0]
        if kind not in _NAMED_BY_REPOSITORY:
            return True
        return owner in self.since and (owner not in self.ended or at >= self.since[owner])


def _digests(data: bytes) -> Iterator[str]:
    return (digest.decode() for digest in _DIGEST.findall(data))
