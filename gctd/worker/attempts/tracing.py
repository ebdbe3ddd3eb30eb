"""The span of a job, and the ids of its trace in log lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import structlog

from eventlog import PROCESS, Context, SpanKind, Trace, message_attributes, record_span, recording_spans
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
        if recording_spans() and parent is not None and span is not None:
            name = f"{PROCESS} {SCAN_STREAM}"
            about = message_attributes(PROCESS, SCAN_STREAM, message_id=job.id)
            record_span(name, span, SpanKind.CONSUMER, began, parent=parent, links=[parent], attributes=about)


def logged(context: Context) -> AbstractContextManager[object]:
    """Add the ids of the trace and of the request to the log lines of the block."""
    trace = Trace.parse(context.traceparent)
    ids = {"trace_id": trace and trace.trace_id, "request_id": context.correlation}
    return structlog.contextvars.bound_contextvars(**{name: id_ for name, id_ in ids.items() if id_ is not None})
