"""The queues of jobs: the scan lane, the fast lane, and two lanes of each worker for jobs that only some workers can run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import attrs

from eventlog.jetstream import Connection, ask, call, persist, subjects_of
from gctd.broker.queue import WorkQueue
from gctd.control.jobs import JobKind

SCAN_STREAM, SCAN_CONSUMER = "crap_jobs_scan", "crap-workers"
LANES_STREAM, FAST_CONSUMER = "crap_jobs_lanes", "crap-fast"
_PREFIX, _FAST = "crap.lane", "fast"
_KINDS = frozenset(JobKind)
_SECOND = 1_000_000_000
_ACK_WAIT = 60 * _SECOND
_PATIENCE = 15.0
"""Seconds for which a broker that is busy or restarts is asked again."""
_FORGOTTEN = 3600 * _SECOND
"""Nanoseconds for which the consumers of a worker that is gone are kept."""


@attrs.frozen
class QueuedJobs:
    """Kind and id of each job in the queues, also of the jobs that workers have.

    `ends` has the last sequence of each stream before the jobs were listed.
    """

    keys: frozenset[tuple[JobKind, str]]
    ends: Mapping[str, int]


class JobQueues:
    """All queues of jobs on one connection. `repair` makes missing streams and consumers that are declared."""

    def __init__(self, connection: Connection, *, repair: Callable[[], Awaitable[object]] | None = None) -> None:
        self._connection = connection
        self._repair = repair
        self.scan = WorkQueue(connection, SCAN_STREAM, SCAN_CONSUMER, repair=repair)
        self.fast = WorkQueue(connection, LANES_STREAM, FAST_CONSUMER, prefix=f"{_PREFIX}.{_FAST}", repair=repair)
        self._of: dict[tuple[str, bool], WorkQueue] = {}

    def shared(self, *, fast: bool) -> WorkQueue:
        """Return the queue that all workers take from."""
        return self.fast if fast else self.scan

    def of(self, worker: str, *, fast: bool) -> WorkQueue:
        """Return a worker's own queue, of short jobs or of scans."""
        lane = f"{worker}-{_FAST if fast else 'scan'}"
        found = self._of.get((worker, fast))
        if found is None:
            found = self._of[worker, fast] = WorkQueue(
                self._connection, LANES_STREAM, f"crap-{lane}", prefix=f"{_PREFIX}.{lane}", repair=lambda: self.prepare(worker)
            )
        return found

    async def prepare(self, worker: str) -> None:
        """Make the consumers of a worker's own queues. Raises Unavailable."""
        if self._repair is not None:
            await self._repair()
        for lane in (f"{worker}-{_FAST}", f"{worker}-scan"):
            config = {
                "durable_name": f"crap-{lane}",
                "name": f"crap-{lane}",
                "description": "Jobs that this worker can run and not every other",
                "filter_subject": f"{_PREFIX}.{lane}.*.*",
                "deliver_policy": "all",
                "ack_policy": "explicit",
                "ack_wait": _ACK_WAIT,
                "max_deliver": 3,
                "max_ack_pending": 1000,
                "inactive_threshold": _FORGOTTEN,
            }
            subject = f"CONSUMER.CREATE.{LANES_STREAM}.crap-{lane}.{_PREFIX}.{lane}.*.*"
            body = {"stream_name": LANES_STREAM, "config": config}
            await persist(self._connection, partial(call, self._connection, subject, body), _PATIENCE)

    async def jobs(self) -> QueuedJobs:
        """Return the jobs in all queues. Raises Refused, Unavailable."""
        keys: set[tuple[JobKind, str]] = set()
        ends: dict[str, int] = {}
        for stream in (SCAN_STREAM, LANES_STREAM):
            state = (await ask(self._connection, f"STREAM.INFO.{stream}"))["state"]
            ends[stream] = state["last_seq"]
            for subject in await subjects_of(self._connection, stream, ">") if state["messages"] else ():
                *_, kind, id_ = subject.split(".")
                if kind in _KINDS:
                    keys.add((JobKind(kind), id_))
        return QueuedJobs(frozenset(keys), ends)

    async def take_back(self, kind: JobKind, id_: str, *, listed: QueuedJobs | None = None) -> None:
        """Take all jobs of this kind and id out of all queues. Raises Unavailable.

        `listed`: jobs that came into a queue after these were listed stay.
        """
        ends = {} if listed is None else {stream: {"seq": last + 1} for stream, last in listed.ends.items()}
        for stream, pattern in ((SCAN_STREAM, f"crap.jobs.{kind}.{id_}"), (LANES_STREAM, f"{_PREFIX}.*.{kind}.{id_}")):
            await call(self._connection, f"STREAM.PURGE.{stream}", {"filter": pattern, **ends.get(stream, {})})
