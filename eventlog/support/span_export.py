"""Starts the export of spans over OTLP/HTTP, if OTEL_EXPORTER_OTLP_ENDPOINT is set. The libraries are the extra `otel`."""

from __future__ import annotations

import os
from collections.abc import Callable

from eventlog.errors import EventLogError
from eventlog.support import tracing

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable that switches the export on: the address of a collector, `http://127.0.0.1:4318`."""


class NoExporter(EventLogError):
    """Spans are to be exported, and the libraries for it are missing."""


def start(service: str) -> Callable[[], None]:
    """Begin to export the spans of a service if the environment names a collector. Return a function that sends the last ones.

    Raises NoExporter if the libraries are missing.
    """
    if not os.environ.get(ENDPOINT):
        return lambda: None
    try:
        from eventlog.support.otlp import OtlpExporter  # noqa: PLC0415 - its libraries are an extra, and slow to import
    except ImportError as error:
        raise NoExporter(
            f"{ENDPOINT} is set, and OpenTelemetry is not installed: in a checkout pip install --editable '.[otel]'"
        ) from error
    exporter = OtlpExporter(os.environ.get("OTEL_SERVICE_NAME", service))
    tracing.export_to(exporter)

    def stop() -> None:
        tracing.export_to(None)
        exporter.stop()

    return stop
