"""A job that a worker has taken from a work queue: it is held while the worker works, and settled once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import structlog

from eventlog import OutcomeUnknown, Unavailable
from eventlog.jetstream import Connection, MessageReader, persist

log = structlog.get_logger(__name__)

SETTLE_TIMEOUT = 10.0
"""Seconds within which the broker confirms a settlement of a job, which includes a restart or an election."""

_REQUEST_TIMEOUT = 2.0
_NANOSECONDS = 1_000_000_000


@attrs.frozen(eq=False)
class Job:
    """A job (`kind`, `id`, `payload`) that this worker holds for now.

    `delivered` counts deliveries, 1 for the first. `sequence` is the job's in the queue. `ack_wait` is the time in seconds after
    which it is given to another worker, unless it is held or settled. The broker takes a late settlement without an error. The
    guard of the aggregate, not the queue, decides whether this worker may still publish results.
    """

    kind: str
    id: str
    payload: bytes
    delivered: int
    sequence: int
    ack_wait: float
    _connection: Connection
    _reply: str
    _stream: str
    _consumer: str
    _taken: float = attrs.field(factory=time.monotonic)

    async def ack(self) -> None:
        """Done: the job leaves the queue. Returns when the broker has confirmed it. Raises Unavailable."""
        await _settle((self,), b"+ACK")

    async def nak(self, delay_seconds: float) -> None:
        """Not done: it is delivered again after a delay, if it was not delivered as often as may be. Raises Unavailable."""
        await _settle((self,), b'-NAK {"delay": %d}' % int(delay_seconds * _NANOSECONDS))

    async def in_progress(self) -> None:
        """Report work on it: AckWait restarts. Raises Unavailable."""
        await self._connection.request(self._reply, b"+WPI", timeout=min(_REQUEST_TIMEOUT, self.ack_wait / 3))

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Keep the job while the block runs: the broker gets a heartbeat every third of AckWait since it was taken."""
        holding: asyncio.Task[None] | None = None

        def begin() -> None:  # most jobs end before: they need no second task
            nonlocal holding
            holding = asyncio.create_task(self._hold(), name=f"hold {self.kind} {self.id}")

        timer = asyncio.get_running_loop().call_later(self._taken + self.ack_wait / 3 - time.monotonic(), begin)
        try:
            yield
        finally:
            timer.cancel()
            if holding is not None:
                holding.cancel()
                await asyncio.wait({holding})

    async def _hold(self) -> None:
        third = self.ack_wait / 3
        confirmed = self._taken
        while True:
            try:
                await self.in_progress()
            except Unavailable as error:
                lost = time.monotonic() - confirmed > self.ack_wait
                log.warning("job cannot be held", kind=self.kind, id=self.id, lost=lost, reason=str(error))
                await asyncio.sleep(min(third / 2, _REQUEST_TIMEOUT))
            else:
                confirmed = time.monotonic()
                await asyncio.sleep(third)

    async def _is_gone(self) -> bool:
        return await MessageReader(self._connection, self._stream).leader({"seq": self.sequence}) is None


async def acknowledge(jobs: Sequence[Job]) -> None:
    """As `Job.ack` of each. A queue takes its jobs in order, so its confirmation of the last one is for all of them.

    Raises Unavailable.
    """
    queues: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        queues.setdefault((job._stream, job._consumer), []).append(job)  # noqa: SLF001 - a job's own module
    for error in await asyncio.gather(*(_settle(of_one, b"+ACK") for of_one in queues.values()), return_exceptions=True):
        if error is not None:
            raise error


async def _settle(jobs: Sequence[Job], how: bytes) -> None:
    connection = jobs[0]._connection  # noqa: SLF001 - a job's own module
    messages = [(job._reply, b"", how) for job in jobs]  # noqa: SLF001 - as above

    async def say() -> None:  # saying it twice does no harm
        try:
            await connection.send_batch(messages, _REQUEST_TIMEOUT)
        except OutcomeUnknown:
            # A broker that was killed may have taken a job out and forgotten that it gave it away: it never confirms that.
            for job in reversed(jobs):
                if not await job._is_gone():  # noqa: SLF001 - as above
                    raise

    await persist(connection, say, SETTLE_TIMEOUT)
