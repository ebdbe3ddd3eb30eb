"""The ways in which function platforms call a function in Python."""

from __future__ import annotations

import sys

import structlog


def _configure_logs() -> None:
    """Log one JSON line for each event to standard error, unless the program has set up its logs.

    The default of structlog prints all local variables of an exception, and these have data of clients.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=repr),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


_configure_logs()
