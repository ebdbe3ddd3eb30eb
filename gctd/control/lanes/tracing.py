"""The spans of jobs that are put into queues."""

from __future__ import annotations

from eventlog import PROCESS, SEND, SpanKind, Trace, message_attributes, record_span
from gctd.control.jobs import JobTicket
from gctd.control.lanes.queues import SCAN_STREAM
from gctd.readmodel import MODEL


def export(ticket: JobTicket, cause: Trace, began: int) -> None:
    """Export the spans of a job in a queue: the commit that asked for it is processed, and the job is sent.

    `cause` is the trace of the commit, `began` the begin of both in nanoseconds since 1970.
    """
    seen = cause.child()
    sending = f"{SEND} {SCAN_STREAM}"
    about = message_attributes(SEND, SCAN_STREAM, message_id=ticket.id)
    record_span(sending, seen.child(), SpanKind.PRODUCER, began, parent=seen, attributes=about)
    processing, about = f"{PROCESS} {MODEL.stream}", message_attributes(PROCESS, MODEL.stream)
    record_span(processing, seen, SpanKind.CONSUMER, began, parent=cause, links=[cause], attributes=about)
