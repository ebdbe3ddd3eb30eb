"""A work queue: jobs are taken by one worker at a time, held while it works, and given to another one if it does not finish.

It uses a stream with work-queue retention and one durable pull consumer with explicit acknowledgement that all workers
share. The queue is derived from the log and may be rebuilt from it at any time. A job may be delivered twice, also both times
as the first delivery: a broker that is killed within milliseconds of one forgets it. So a second delivery must do no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import attrs
import structlog

from eventlog import Unavailable
from eventlog.jetstream import (
    CONSUMER_MISSING,
    MOST_MESSAGES,
    STREAM_MISSING,
    TIMEOUT,
    Appender,
    Batches,
    Connection,
    Message,
    MessageReader,
    Refused,
    answer_of,
    ask,
    call,
    delivery_of,
)
from gctd.broker.fetcher import FetchedMessage, Fetcher, Interrupted
from gctd.broker.job import Job

log = structlog.get_logger(__name__)

_SECOND = 1_000_000_000
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_ACK_WAIT_AGE = 30.0
_BATCH_TIMEOUT = 2.0
_WORTH_A_BATCH = 8
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


class JobState(enum.Enum):
    """The state of a job in the queue, by kind and id."""

    ABSENT = "absent"
    """There is none: it was never published, or it is settled."""

    WAITING = "waiting"
    """No worker has taken it yet."""

    IN_FLIGHT = "in flight"
    """A worker has it, or it waits for its next delivery."""

    EXHAUSTED = "exhausted"
    """It is there, but all its deliveries are used: no worker will get it."""


@attrs.frozen
class Depth:
    """How full a queue is. The figures are not taken at exactly the same moment."""

    pending: int
    """Jobs that wait for a worker."""

    in_flight: int
    """Jobs that a worker has, or that wait for their next delivery."""

    redelivered: int
    """Jobs in flight that were delivered more than once."""

    exhausted: int
    """Jobs that were delivered as often as may be."""


class Posting(Protocol):
    """A job to be put into a queue: `dedupe` is the same however often it is."""

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def dedupe(self) -> str: ...


class WorkQueue:
    """Jobs of a kind and an id, on the subjects `<prefix>.<kind>.<id>` of a stream.

    `repair` is called where stream or consumer are missing, to make them (`lambda: apply(connection, declarations)`).
    """

    def __init__(
        self,
        connection: Connection,
        stream: str,
        consumer: str,
        *,
        prefix: str = "crap.jobs",
        repair: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._consumer = consumer
        self._prefix = prefix
        self._repair = repair
        self._reader = MessageReader(connection, stream)
        self._batches = Batches(connection, Appender(connection, self._reader))
        self._fetcher = Fetcher(lambda: connection.client, stream, consumer)
        self._ack_wait = 0.0
        self._ack_wait_asked: float | None = None

    async def publish(self, kind: str, id_: str, payload: bytes, *, dedupe: str) -> bool:
        """Put a job into the queue, durably; False if one with the same `dedupe` id was put in shortly before (2 minutes).

        A repetition with the same id is safe in that time. Raises Unavailable, OutcomeUnknown.
        """
        headers = b"Nats-Msg-Id: %b\r\n" % dedupe.encode()
        subject = self._subject(kind, id_)
        reply = await self._connection.request(subject, payload, headers=headers)
        return not answer_of(subject, reply.data).get("duplicate", False)

    async def publish_all(self, postings: Sequence[Posting]) -> None:
        """As `publish`, of many: in one batch, which is synced once, if all of them are new.

        Raises Unavailable, OutcomeUnknown: some may be in the queue. A repetition is safe, as with `publish`.
        """
        for start in range(0, len(postings), MOST_MESSAGES):
            some = postings[start : start + MOST_MESSAGES]
            if len(some) >= _WORTH_A_BATCH and await self._publish_together(some):
                continue
            tries = (self.publish(one.kind, one.id, one.payload, dedupe=one.dedupe) for one in some)
            for result in await asyncio.gather(*tries, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def _publish_together(self, postings: Sequence[Posting]) -> bool:
        """Whether all are stored by one batch; else none is, or it is not known: then each is dropped if it is repeated."""
        messages = [
            Message(self._subject(one.kind, one.id), 0, one.dedupe, b"Nats-Msg-Id: %b\r\n" % one.dedupe.encode(), one.payload)
            for one in postings
        ]
        try:
            ack = await self._batches.send(lambda: messages, _BATCH_TIMEOUT)
        except Unavailable as error:
            log.info("jobs are put in one by one", queue=self._stream, reason=str(error))
            return False
        if ack.error is not None:
            log.debug("jobs are put in one by one", queue=self._stream, reason=str(ack.error))
        return ack.error is None

    async def fetch(self, timeout: float) -> Job | None:  # noqa: ASYNC109 - the server has to know it too
        """The next job, or None if there is none for `timeout` seconds (a broker that is away counts as none).

        It has to be settled (`ack`, `nak`) within the consumer's AckWait or be held. A job that arrives when the call has
        been cancelled goes back to the queue. Raises Unavailable if there is no such consumer, nor a `repair` to make it.
        """
        end, pause = time.monotonic() + timeout, _SHORTEST_PAUSE
        while (left := end - time.monotonic()) > 0:
            try:
                ack_wait = await self._known_ack_wait()
                message = await self._fetcher.take(left)
            except Interrupted as error:
                log.debug("fetching interrupted", queue=self._stream, reason=str(error))
                self._ack_wait_asked = None  # whether the consumer is there has to be seen too
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
                with contextlib.suppress(Unavailable):
                    await self._connection.up(max(0.0, end - time.monotonic()))
            else:
                return self._job(message, ack_wait) if message else None
        return None

    async def fetch_now(self) -> Job | None:
        """Take the next job if one waits; None if none does, or the broker is away. Raises Unavailable as `fetch` does."""
        try:
            ack_wait = await self._known_ack_wait()
            message = await self._fetcher.take(0)
        except Interrupted as error:
            log.debug("fetching interrupted", queue=self._stream, reason=str(error))
            self._ack_wait_asked = None
            return None
        return self._job(message, ack_wait) if message else None

    async def lookup(self, kind: str, id_: str) -> JobState:
        """Return the state of a job. Raises Unavailable.

        An exhausted job is recognized when no older one is in flight any more; until then it counts as in flight.
        """
        found = await self._last(kind, id_)
        if found is None:
            return JobState.ABSENT
        try:
            info = await ask(self._connection, f"CONSUMER.INFO.{self._stream}.{self._consumer}")
        except Refused as error:
            if error.number != CONSUMER_MISSING:
                raise
            return JobState.WAITING
        if found > info["delivered"]["stream_seq"]:
            return JobState.WAITING
        if info["num_ack_pending"] and found > info["ack_floor"]["stream_seq"]:
            return JobState.IN_FLIGHT
        # Delivered, there still, and the consumer does not wait for it; if it was not settled in between:
        return JobState.EXHAUSTED if await self._last(kind, id_) == found else JobState.ABSENT

    async def take_back(self, kind: str, id_: str) -> None:
        """Take all jobs of this kind and id out of the queue. Raises Unavailable."""
        await call(self._connection, f"STREAM.PURGE.{self._stream}", {"filter": self._subject(kind, id_)})

    async def depth(self) -> Depth:
        """How full the queue is. Raises Unavailable."""
        stream = await ask(self._connection, f"STREAM.INFO.{self._stream}")
        consumer = await ask(self._connection, f"CONSUMER.INFO.{self._stream}.{self._consumer}")
        pending, in_flight = consumer["num_pending"], consumer["num_ack_pending"]
        exhausted = max(0, stream["state"]["messages"] - pending - in_flight)
        return Depth(pending, in_flight, consumer["num_redelivered"], exhausted)

    def _subject(self, kind: str, id_: str) -> str:
        if not (_TOKEN.fullmatch(kind) and _TOKEN.fullmatch(id_)):
            raise ValueError(f"a job's kind and id are made of A-Z a-z 0-9 _ -, not {kind!r} and {id_!r}")
        return f"{self._prefix}.{kind}.{id_}"

    async def _last(self, kind: str, id_: str) -> int | None:
        """The sequence of the newest job of this name in the queue."""
        found = await self._reader.leader({"last_by_subj": self._subject(kind, id_)}, TIMEOUT)
        return None if found is None else found.sequence

    async def _known_ack_wait(self) -> float:
        """The consumer's AckWait in seconds. It is asked for now and then, and with it whether the consumer is there."""
        if self._ack_wait_asked is None or time.monotonic() - self._ack_wait_asked > _ACK_WAIT_AGE:
            try:
                info = await ask(self._connection, f"CONSUMER.INFO.{self._stream}.{self._consumer}")
            except Refused as error:
                if error.number not in {CONSUMER_MISSING, STREAM_MISSING}:
                    raise
                await self._make_consumer()
                raise Interrupted("the consumer was missing") from error
            except Unavailable as error:
                raise Interrupted(str(error)) from error
            self._ack_wait, self._ack_wait_asked = info["config"]["ack_wait"] / _SECOND, time.monotonic()
        return self._ack_wait

    async def _make_consumer(self) -> None:
        if self._repair is None:
            raise Unavailable(f"the queue {self._stream} has no consumer {self._consumer}: apply streams.yaml")
        log.warning("the queue's consumer is missing, making it", queue=self._stream, consumer=self._consumer)
        try:
            await self._repair()
        except Unavailable as error:
            raise Interrupted(str(error)) from error

    def _job(self, message: FetchedMessage, ack_wait: float) -> Job:
        *_, kind, id_ = message.subject.split(".")
        delivered, sequence = delivery_of(message.reply)
        queue = (self._stream, self._consumer)
        return Job(kind, id_, message.data, delivered, sequence, ack_wait, self._connection, message.reply, *queue)
