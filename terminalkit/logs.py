"""Structured logs, one line each, as JSON or for reading; the logs of libraries come out in the same form."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Any, Literal, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, Processor

Level = Literal["debug", "info", "warn", "warning", "error"]
Format = Literal["json", "text"]

_QUIET = {
    "asyncio": logging.ERROR,  # it warns when a TLS connection to NATS ends
    "nats": logging.WARNING,
    "aiohttp.access": logging.WARNING,
}
_ENCODER = msgspec.json.Encoder(enc_hook=repr)


class _Writer:
    """Where structlog's lines go. It knows the name of the logger, which structlog itself forgets."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self.name = name

    def msg(self, line: str) -> None:
        # On a full disk, or without a reader, the line is lost. The work that the line tells of is not.
        with suppress(OSError):
            self._stream.write(line + "\n")

    debug = info = warning = error = critical = exception = log = msg


def configure_logs(*, level: Level = "info", style: Format = "json", stream: TextIO | None = None) -> None:
    """Set up logging for the process: structlog and the standard library, to `stream` (standard error)."""
    sink = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last = _renderers(style, sink)
    structlog.configure(
        processors=[_add_name, *shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *names: _Writer(sink, names[0] if names else ""),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sink)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=threshold, force=True)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(threshold, least))


def _renderers(style: Format, sink: TextIO) -> list[Processor]:
    if style == "text":
        return [structlog.dev.ConsoleRenderer(colors=sink.isatty(), exception_formatter=structlog.dev.plain_traceback)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_dump)]


def _dump(event: EventDict, **_: Any) -> str:
    return _ENCODER.encode(event).decode()


def _add_name(logger: _Writer, _: str, event: EventDict) -> EventDict:
    event["logger"] = logger.name
    return event
