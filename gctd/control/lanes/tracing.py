"""The spans of jobs that are put into queues."""

from __future__ import annotations

from eventlog.support import tracing
from eventlog.support.tracing import Trace
from gctd.control.jobs import JobTicket
from gctd.control.lanes.queues import SCAN_STREAM
from gctd.readmodel import MODEL


def export(ticket: JobTicket, cause: Trace, began: int) -> None:
    """Export the spans of a job in a queue: the commit that asked for it is processed, and the job is sent.

    `cause` is the trace of the commit, `began` the begin of both in nanoseconds since 1970.
    """
    seen = cause.child()
    sending = f"{tracing.SEND} {SCAN_STREAM}"
    about = tracing.message_attributes(tracing.SEND, SCAN_STREAM, message_id=ticket.id)
    tracing.record_span(sending, seen.child(), tracing.SpanKind.PRODUCER, began, parent=seen, attributes=about)
    processing, about = f"{tracing.PROCESS} {MODEL.stream}", tracing.message_attributes(tracing.PROCESS, MODEL.stream)
    tracing.record_span(processing, seen, tracing.SpanKind.CONSUMER, began, parent=cause, links=[cause], attributes=about)
