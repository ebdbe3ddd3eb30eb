"""The course of a job from the queue: start an attempt, do the work under its lease, report its end.

Discoveries and scans have the same course. Their attempts hold the differences.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import structlog

from eventlog import Commands, Context, Decider, EventLog, EventLogError, Stages, Trace, recording_spans
from gctd.broker.job import Job, acknowledge
from gctd.control.jobs import JobKind, asked_by
from gctd.domain.errors import NotFound, Refused
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.commands import BlockTask
from gctd.domain.task.state import Task
from gctd.worker.attempts.attempt import Attempt, AttemptOver, DiscoveryAttempt, R, S, ScanAttempt, now, report
from gctd.worker.attempts.attempt_log import LogTargets, Recording
from gctd.worker.attempts.tracing import logged, traced
from gctd.worker.work import Work, WorkFailed

_log = structlog.get_logger(__name__)
_Logger = structlog.stdlib.BoundLogger


TOGETHER = 0.02
"""Seconds for which a job that is done waits for others, to be acknowledged with them."""
LONGEST_DELAY = 3600.0
"""Seconds until the next attempt is due, at most."""


class Handlers:
    """Handles jobs under one worker's id and session.

    The next attempt is due `retry_delay` seconds after the first one failed, twice that after the second, LONGEST_DELAY at most.
    """

    def __init__(
        self,
        *,
        worker: str,
        session: str,
        log: EventLog,
        commands: Commands,
        work: Work,
        logs: LogTargets,
        retry_delay: float,
    ) -> None:
        self._worker = worker
        self._capabilities = work.equipment.capabilities
        self._log = log
        self._logs = logs
        self._commands = commands
        self._retry_delay = retry_delay
        self._actor = f"worker:{worker}"
        self._session = session
        self._work = work
        self._reporting: set[asyncio.Task[None]] = set()
        self._done: list[Job] = []
        self._acknowledging: asyncio.Task[None] | None = None

    async def handle(self, job: Job) -> asyncio.Task[None] | None:
        """See a job through: when this returns it is handed back with a delay, or its result is about to be reported.

        Returns the task that reports the result, if there is one. `settled` waits for it and for the acknowledgement. The next
        job need not.

        Cancelled, it hands the attempt back: another one may begin at once.
        """
        asked = asked_by(job)
        if asked.commit is not None:
            self._commands.learn(asked.commit)
        context = msgspec.structs.replace(asked.context.in_new_span(), actor=self._actor)
        with logged(context), traced(job, asked.context, context):
            if lacks := self._capabilities.missing(asked.needs):
                await self._decline(job, lacks, context)
            elif job.kind == JobKind.SCAN:
                return await self._run(ScanAttempt, job, context)
            elif job.kind == JobKind.DISCOVER:
                return await self._run(DiscoveryAttempt, job, context)
            else:
                _log.error("job of an unknown kind dropped", kind=job.kind, id=job.id)
                await job.ack()
            return None

    async def _decline(self, job: Job, lacks: str, context: Context) -> None:
        """Leave a task to other workers: this one was not present yet when the job was put into the queue."""
        _log.info("job left to other workers", id=job.id, missing=lacks)
        command = BlockTask(reason=f"{self._worker} does not have {lacks}", at=now())
        with suppress(Refused, NotFound):
            await report(self._commands, TASK, job.id, lambda: command, context)
        self._acknowledge(job)

    async def settled(self, timeout: float) -> None:  # noqa: ASYNC109 - results not reported by then are abandoned, and logged
        """Wait until results are reported and jobs acknowledged, or given up.

        `timeout` bounds the wait for the results, in seconds.
        """
        if self._reporting:
            _, late = await asyncio.wait(self._reporting, timeout=timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._acknowledging is not None:
            await self._acknowledging

    def _acknowledge(self, job: Job) -> None:
        """Release a job for good, in the background. A repeated delivery does no harm, because its aggregate has moved on."""
        self._done.append(job)
        if self._acknowledging is None:
            self._acknowledging = asyncio.create_task(self._acknowledge_all())

    async def _acknowledge_all(self) -> None:
        try:
            while self._done:
                await asyncio.sleep(TOGETHER)
                jobs, self._done = self._done, []
                try:
                    await acknowledge(jobs)
                except EventLogError as error:
                    _log.warning("jobs not acknowledged", ids=[job.id for job in jobs], error=str(error))
        finally:
            self._acknowledging = None

    async def _run(self, kind: type[Attempt[S, R]], job: Job, context: Context) -> asyncio.Task[None] | None:
        log = _log.bind(aggregate=kind.decider.aggregate(job.id).subject)
        try:
            started = await report(self._commands, kind.decider, job.id, lambda: kind.start(self._worker, self._session), context)
        except (Refused, NotFound) as refusal:
            log.info("job not taken", reason=str(refusal))
            await self._hand_back(kind.decider, job)
            return None
        state = started.state
        recording = self._logs.of(state.id, state.attempt) if kind.has_log else Recording()
        async with recording.published():
            attempt = kind(
                work=self._work,
                session=self._session,
                commands=self._commands,
                context=context,
                job=job,
                state=state,
                sequence=started.sequence,
                recording=recording,
                stages=Stages(Trace.parse(context.traceparent) if recording_spans() else None),
            )
            return await self._see_through(attempt, log.bind(attempt=state.attempt))

    async def _see_through(self, attempt: Attempt[S, R], log: _Logger) -> asyncio.Task[None] | None:
        recording = attempt.recording
        log.info("attempt started")
        # The numbers of attempts continue if a user retries a task.
        delay = min(self._retry_delay * 2.0 ** (attempt.state.attempt - 1), LONGEST_DELAY)
        try:
            result = await attempt.run(self._log)
        except AttemptOver as over:
            log.info("attempt was ended from outside")
            await attempt.job.ack()
            await attempt.ended(over.state)
        except WorkFailed as failure:
            log.info("attempt failed", reason=str(failure), permanent=failure.permanent)
            await self._fail(attempt, str(failure), delay, permanent=failure.permanent)
        except asyncio.CancelledError:
            await asyncio.shield(self._fail(attempt, "the worker was stopped", 0, permanent=False))
            raise
        except Exception as error:
            log.exception("attempt failed in a way that is not the repository's")
            await self._fail(attempt, f"internal error: {error!r}", delay, permanent=False)
        else:
            recording.completed()
            stored = await recording.stored()
            reporting = asyncio.create_task(self._finish(attempt, lambda: attempt.finish(result, stored), log))
            self._reporting.add(reporting)
            reporting.add_done_callback(self._reporting.discard)
            return reporting
        finally:
            attempt.stages.end()
        return None

    async def _finish(self, attempt: Attempt[S, R], command: Callable[[], Any], log: _Logger) -> None:
        try:
            await self._report(attempt, command)
        except EventLogError as error:
            # The control plane gives up an attempt that is not among the announced jobs.
            log.warning("result not reported", error=str(error))
        except asyncio.CancelledError:
            log.warning("result not reported before the end")
            raise
        except Exception:
            log.exception("result not reported")
        else:
            log.info("attempt finished")

    async def _fail(self, attempt: Attempt[S, R], reason: str, delay: float, *, permanent: bool) -> None:
        retry_at = now() + timedelta(seconds=delay)
        attempt.recording.failed(reason)
        stored = await attempt.recording.stored()
        await self._report(attempt, lambda: attempt.fail(reason, retry_at, stored, permanent=permanent))

    async def _report(self, attempt: Attempt[S, R], command: Callable[[], Any]) -> None:
        """Report the end of the attempt, then release the job: for good, or until the next attempt is due."""
        try:
            outcome = await attempt.report(command)
        except (Refused, NotFound) as refusal:
            _log.info("report refused", id=attempt.state.id, reason=str(refusal))
            self._acknowledge(attempt.job)
            return
        await self._release(attempt.job, outcome.state)

    async def _hand_back(self, decider: Decider[Any, Any, Any], job: Job) -> None:
        """Return a job that cannot be started: drop it, or delay it if its aggregate has an attempt due later."""
        last = await self._log.last(decider.aggregate(job.id), consistent=True)
        if last is None:
            self._acknowledge(job)
        else:
            await self._release(job, last.state)

    async def _release(self, job: Job, state: Repo | Task) -> None:
        if state.lease is None and state.retry_at is not None:
            await job.nak(max(0.0, (state.retry_at - now()).total_seconds()))
        else:
            self._acknowledge(job)
