"""The span of a job, and the ids of its trace in log lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import structlog

from eventlog import Context
from eventlog.support import tracing
from eventlog.support.tracing import Trace
from gctd.broker.job import Job
from gctd.control.lanes.queues import SCAN_STREAM


@contextmanager
def traced(job: Job, cause: Context, context: Context) -> Iterator[None]:
    """Export a span for the block, which works on a job: it is in the trace of the request that asked for the job."""
    began = time.time_ns()
    try:
        yield
    finally:
        parent, span = Trace.parse(cause.traceparent), Trace.parse(context.traceparent)
        if tracing.recording_spans() and parent is not None and span is not None:
            name = f"{tracing.PROCESS} {SCAN_STREAM}"
            about = tracing.message_attributes(tracing.PROCESS, SCAN_STREAM, message_id=job.id)
            tracing.record_span(name, span, tracing.SpanKind.CONSUMER, began, parent=parent, links=[parent], attributes=about)


def logged(context: Context) -> AbstractContextManager[object]:
    """Add the ids of the trace and of the request to the log lines of the block."""
    trace = Trace.parse(context.traceparent)
    ids = {"trace_id": trace and trace.trace_id, "request_id": context.correlation}
    return structlog.contextvars.bound_contextvars(**{name: id_ for name, id_ in ids.items() if id_ is not None})
