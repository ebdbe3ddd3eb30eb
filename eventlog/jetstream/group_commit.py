"""Group commit: appends that wait at the same moment share a batch if that is faster than one after the other.

A server that syncs before it acknowledges syncs for each message, and for a batch a few times whatever its size. On one node
a batch costs about as much as 15 messages, on three as much as 8, on a server that does not sync more than hundreds: so both are
measured while they are used (`CostEstimate`), and batches are made of the gathered appends when they pay.

A shared batch is a bet that no guard in it fails and no id in it is known. If it is refused, or its outcome is not known, each
append is sent by itself, as if it had been alone.

Several commits of one aggregate, a row, are one append. They share a batch, or only the first one is stored. Commits that belong
together need a batch in any case, so all appends that wait while one is under way share the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from time import perf_counter

import attrs
import structlog

from eventlog.commit import Appended
from eventlog.errors import LogDamaged, OutcomeUnknown, Unavailable
from eventlog.jetstream.append import Appender, given_up, refusal
from eventlog.jetstream.batch import MOST_MESSAGES, Batches, sequences
from eventlog.jetstream.message import Message, digest_soon

log = structlog.get_logger(__name__)

MOST_BYTES = 4 * 1024**2
"""Bytes of a shared batch: beyond it waiting for the others costs more than the sync that is saved."""

_TRY_TIMEOUT = 2.0
_FIRST_SINGLE, _FIRST_LONE, _FIRST_BATCH = 0.0002, 0.0004, 0.0025
_LEAST, _MOST = 0.00001, 1.0
_STEP, _FORGET, _CLEARLY = 1.05, 0.01, 1.5
_MOST_STEPS = 8
_EACH = 0.00003
"""Seconds that a message in a batch takes: the cost of writing it, on both sides."""
_FEWEST = 4
_RESOLUTION = 0.001
"""Seconds by which the loop's clock may be behind its timers."""
_SAMPLE, _SAMPLE_TIME = 8, 0.005
"""Appends and seconds that the pace is measured over: acknowledgements come in bunches, so a few say nothing."""


@attrs.define
class CostEstimate:
    """The cost of appends on this server, in seconds.

    `single` is the cost of each of many that are sent at once, `lone` the cost of each of several that are sent one after the
    other, `batch` the fixed part of a batch. All follow the median of the measurements, since a stall has no meaning for the next
    append. If all measurements are on one side, they follow soon. The first values belong to a virtual disk that syncs in
    150 µs. A way that is not used for a while returns to them, so that it is tried again.
    """

    single: float = _FIRST_SINGLE
    lone: float = _FIRST_LONE
    batch: float = _FIRST_BATCH
    _run_single: int = 0
    _run_lone: int = 0
    _run_batch: int = 0

    def batch_pays(self, count: int) -> bool:
        """Whether that many appends are stored clearly sooner in one batch."""
        return count >= _FEWEST and count * (self.single - _EACH) > _CLEARLY * self.batch

    def row_pays(self, count: int) -> bool:
        """Whether that many commits of one aggregate are stored clearly sooner in one batch."""
        return count >= _FEWEST and count * (self.lone - _EACH) > _CLEARLY * self.batch

    def saw_singles(self, count: int, seconds: float) -> None:
        """That many appends of several on their way were acknowledged in that time."""
        self.single, self._run_single = _towards(self.single, seconds / count, self._run_single)
        self.batch += (_FIRST_BATCH - self.batch) * _FORGET

    def saw_lone(self, seconds: float) -> None:
        """An append was acknowledged in that time while no other one was on its way."""
        self.lone, self._run_lone = _towards(self.lone, seconds, self._run_lone)
        self.batch += (_FIRST_BATCH - self.batch) * _FORGET

    def saw_batch(self, count: int, seconds: float) -> None:
        """A batch of that many was acknowledged that long after it was sent."""
        self.batch, self._run_batch = _towards(self.batch, seconds - count * _EACH, self._run_batch)
        self.single += (_FIRST_SINGLE - self.single) * _FORGET
        self.lone += (_FIRST_LONE - self.lone) * _FORGET


def _towards(estimate: float, seen: float, run: int) -> tuple[float, int]:
    """An estimate of the median after one more value: a small step in its direction, however far away it is.

    `run` counts the values before it that lay on one side, above (positive) or below: the longer it is, the larger the step.
    """
    above = seen > estimate
    run = max(run, 0) + 1 if above else min(run, 0) - 1
    step = _STEP ** min(abs(run), _MOST_STEPS)
    return (min(estimate * step, _MOST) if above else max(estimate / step, _LEAST)), run


@attrs.define(eq=False)
class _PendingAppend:
    messages: Sequence[Message]
    end: float
    result: asyncio.Future[Sequence[Appended] | None]
    """None: continue alone."""
    together: bool = False
    """Whether all messages are stored or none. Of a row the first one may be stored alone."""
    sent: bool = False


class GroupCommit:
    """Appends of one stream, each on its own or in shared batches, whichever is faster at the moment."""

    def __init__(self, appends: Appender, batches: Batches) -> None:
        self.pace = CostEstimate()
        self.shared = 0
        """How many appends were stored in shared batches, for metrics."""
        self._appends = appends
        self._batches = batches
        self._queue: list[_PendingAppend] = []
        self._alone = 0
        self._answered = 0
        self._since = 0.0
        self._batch: asyncio.Task[None] | None = None
        self._shared: Sequence[_PendingAppend] = ()
        self._scheduled = False
        self._alarm: asyncio.TimerHandle | None = None

    def row_of(self, count: int) -> int:
        """How many of that many commits of one aggregate are to be given to `append` at once."""
        shared = self._batch is not None or self.pace.row_pays(count) or self.pace.batch_pays(self._alone + count)
        return min(count, MOST_MESSAGES) if shared else 1

    async def append(self, row: Sequence[Message], end: float) -> Sequence[Appended]:
        """Store a row until `end` (time of the loop): all of it, or its first message.

        Raises as `EventLog.append_in_row`.
        """
        unknown = False
        if self._batch is not None or self._scheduled or self._queue or len(row) > 1 or self.pace.batch_pays(self._alone + 1):
            waiting = await self._wait(row, end, together=False)
            if (appended := waiting.result.result()) is not None:
                return appended
            unknown = waiting.sent
            if unknown and len(row) > 1 and (found := await self._batches.append_row_again(row, end)) is not None:
                return found
        return [await self._append_alone(row[0], end, unknown=unknown)]

    async def append_together(self, messages: Sequence[Message], end: float) -> Sequence[Appended]:
        """Store all messages or none until `end` (time of the loop). No subject twice. Raises as `EventLog.append_together`."""
        sent = False
        if len(messages) < MOST_MESSAGES and sum(message.size for message in messages) <= MOST_BYTES:
            waiting = await self._wait(messages, end, together=True)
            if (appended := waiting.result.result()) is not None:
                return appended
            sent = waiting.sent
        digest_soon(messages)
        return await self._batches.append(messages, end, sent=sent)

    async def _append_alone(self, message: Message, end: float, *, unknown: bool) -> Appended:
        lone, began = self._alone == 0, perf_counter()
        if self._alone < _FEWEST:
            self._answered, self._since = 0, began
        self._alone += 1
        digest_soon((message,))
        try:
            appended = await self._appends.append(message, end, unknown=unknown)
        finally:
            self._alone -= 1
            if self._queue:
                self._schedule()
        if lone:
            self.pace.saw_lone(perf_counter() - began)
        self._answered += 1
        if self._answered >= _SAMPLE and (passed := perf_counter() - self._since) >= _SAMPLE_TIME:
            self.pace.saw_singles(self._answered, passed)
            self._answered, self._since = 0, perf_counter()
        return appended

    async def _wait(self, messages: Sequence[Message], end: float, *, together: bool) -> _PendingAppend:
        waiting = _PendingAppend(messages, end, asyncio.get_running_loop().create_future(), together)
        self._queue.append(waiting)
        self._schedule()
        self._watch(end)
        await waiting.result
        return waiting

    def _watch(self, end: float) -> None:
        """One timer for all waiters, which hardly ever expires: the loop's own timers cost more than the waiting."""
        if self._alarm is not None:
            if self._alarm.when() <= end:
                return
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_at(end, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        now = asyncio.get_running_loop().time() + _RESOLUTION
        for waiting in (*self._shared, *self._queue):
            if waiting.result.done():
                continue
            if waiting.end > now:
                self._watch(waiting.end)
                continue
            reason = Unavailable("it waited for others until its deadline")
            waiting.result.set_exception(given_up(waiting.messages[0].subject, reason, unknown=waiting.sent))

    def _schedule(self) -> None:
        """Decide at the end of this turn of the loop: tasks that wake together append together."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._decide)

    def _decide(self) -> None:
        self._scheduled = False
        if self._batch is not None:
            return
        self._queue = [waiting for waiting in self._queue if not waiting.result.done()]
        taken, left = self._take()
        count = sum(len(waiting.messages) for waiting in taken)
        if self.pace.batch_pays(count) or any(map(self._needs_batch, taken)):
            self._queue, self._shared = left, taken
            self._batch = asyncio.create_task(self._share(taken))
        elif self._alone == 0 or not self.pace.batch_pays(self._alone + count):
            released, self._queue = self._queue, []
            for waiting in released:
                waiting.result.set_result(None)

    def _needs_batch(self, waiting: _PendingAppend) -> bool:
        count = len(waiting.messages)
        return waiting.together or (count > 1 and self.pace.row_pays(count))

    def _take(self) -> tuple[Sequence[_PendingAppend], list[_PendingAppend]]:
        """The next appends, within the limits of a batch, and the remaining ones.

        Each aggregate comes once: the guard of a second append to it would fail the batch for all. So does each unique key.
        """
        taken, left = list[_PendingAppend](), list[_PendingAppend]()
        size, count, once = 0, 0, set[str]()
        for waiting in self._queue:
            messages = waiting.messages
            more = sum(message.size for message in messages)
            own = [name for message in messages for name in (message.subject, message.unique) if name]
            if not once.isdisjoint(own) or count + len(messages) > MOST_MESSAGES or (taken and size + more > MOST_BYTES):
                left.append(waiting)
            else:
                taken.append(waiting)
                once.update(own)
                size, count = size + more, count + len(messages)
        return taken, left

    async def _share(self, taken: Sequence[_PendingAppend]) -> None:
        appended: Sequence[Sequence[Appended] | None] = [None] * len(taken)
        try:
            appended = await self._try(taken)
        except OutcomeUnknown as error:
            log.info("shared batch without an answer", appends=len(taken), reason=str(error))
        except (Unavailable, LogDamaged) as error:
            log.debug("shared batch refused", appends=len(taken), reason=str(error))
            for waiting in taken:
                waiting.sent = False
        finally:
            self._batch, self._shared = None, ()
            for waiting, result in zip(taken, appended, strict=True):
                if not waiting.result.done():
                    waiting.result.set_result(result)
            self._schedule()  # after them, so that what they append next is in the next batch

    async def _try(self, taken: Sequence[_PendingAppend]) -> Sequence[Sequence[Appended] | None]:
        """Raises OutcomeUnknown; Unavailable or LogDamaged if no message of it was stored."""
        began, sent = perf_counter(), list[Message]()
        await self._appends.check()

        def sending() -> Sequence[Message]:
            nonlocal began
            began = perf_counter()
            for waiting in taken:
                if not waiting.result.done():  # its caller may have an error by now, or be gone
                    waiting.sent = True
                    sent.extend(waiting.messages)
            digest_soon(sent)
            return sent

        ack = await self._batches.send(sending, _TRY_TIMEOUT)
        if ack.error is not None:
            error = refusal(ack.error)
            raise error if isinstance(error, OutcomeUnknown) else Unavailable(str(ack.error))
        appended = iter(sequences(ack, len(sent)))
        if len(taken) > 1 or not taken[0].together:
            self.shared += len(sent)
        self.pace.saw_batch(len(sent), perf_counter() - began)
        self._answered, self._since = 0, perf_counter()
        return [list(islice(appended, len(waiting.messages))) if waiting.sent else None for waiting in taken]
