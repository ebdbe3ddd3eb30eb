"""Reports of a worker to the log about its attempt.

The broker may be away at the time of a report. A report is repeated until it is stored or refused. The attempt's fence
guards it, so it takes effect once, or not at all if the attempt is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from eventlog import Commands, Conflict, Context, Decider, Outcome, Unavailable

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")

_log = structlog.get_logger(__name__)

PATIENCE = 300.0
"""Seconds for which a report is repeated while the broker cannot be reached."""
PAUSE = 0.5
"""Seconds between two tries."""


def now() -> datetime:
    """The time, aware, UTC."""
    return datetime.now(UTC)


async def report(
    commands: Commands,
    decider: Decider[S, C, E],
    id_: str,
    command: Callable[[], C],
    context: Context | None = None,
    *,
    patience: float = PATIENCE,
) -> Outcome[S, E]:
    """Execute a command, built for each try by `command`, for up to `patience` seconds.

    Raises the errors of the decider (Refused: the attempt is over), and Unavailable after `patience` seconds.
    """
    until = asyncio.get_running_loop().time() + patience
    while True:
        try:
            return await commands.execute(decider, id_, command(), context)
        except (Unavailable, Conflict) as error:
            if asyncio.get_running_loop().time() > until:
                raise
            _log.warning("report repeated", id=id_, error=str(error))
            await asyncio.sleep(PAUSE)
