"""The exporter of spans: OpenTelemetry's SDK over OTLP/HTTP. It needs the extra `otel`."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.trace import SpanKind as Kind

from eventlog.support.tracing import Attributes, SpanKind, Trace


class OtlpExporter:
    """Sends spans in batches from a thread. The variables OTEL_EXPORTER_OTLP_* and OTEL_BSP_* of OpenTelemetry set it up.

    `service` is the name of this process in the traces.
    """

    def __init__(self, service: str) -> None:
        self._resource = Resource.create({"service.name": service})
        self._scope = InstrumentationScope("eventlog")
        self._processor = BatchSpanProcessor(OTLPSpanExporter())

    def export(
        self,
        name: str,
        span: Trace,
        kind: SpanKind,
        times: tuple[int, int],
        *,
        parent: Trace | None,
        links: Iterable[Trace],
        attributes: Attributes,
        failed: str | None,
    ) -> None:
        """See `eventlog.support.tracing.Exporter`."""
        self._processor.on_end(
            ReadableSpan(
                name,
                context=_context(span, remote=False),
                parent=None if parent is None else _context(parent, remote=True),
                resource=self._resource,
                attributes=attributes,
                links=[Link(_context(one, remote=True)) for one in links],
                kind=Kind(kind),
                status=Status(StatusCode.UNSET) if failed is None else Status(StatusCode.ERROR, failed),
                start_time=times[0],
                end_time=times[1],
                instrumentation_scope=self._scope,
            )
        )

    def stop(self) -> None:
        """Send the last spans."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]  # it has no types


def _context(trace: Trace, *, remote: bool) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    return SpanContext(int(trace.trace_id, 16), int(trace.span_id, 16), is_remote=remote, trace_flags=flags)
