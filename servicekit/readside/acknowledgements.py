"""Commands that are answered before the tables have them, and the reads that wait for these commands."""

from __future__ import annotations

from collections.abc import Awaitable

import structlog

from projections.errors import Behind, ProjectorStopped
from projections.projector.projector import Projector

_log = structlog.get_logger(__name__)

AHEAD = 100
"""Commits by which answered commands are ahead of the tables at most. A later command waits, and so no read waits for long."""


class Acknowledgements:
    """The highest sequence that reads of this process have to include. It grows with each command that is acknowledged.

    `seconds`: a read waits no longer for the tables. If it waited in vain, the next reads do not wait until the tables have
    reached the sequence of that time. Their answers name the older position that the tables have.
    """

    def __init__(self, projector: Projector, seconds: float) -> None:
        self._projector = projector
        self._seconds = seconds
        self._owed = 0
        self._missed = 0

    def add(self, sequence: int) -> None:
        """From now on reads include this sequence of the log."""
        self._owed = max(self._owed, sequence)

    @property
    def pending(self) -> bool:
        """Whether the tables lack a command that was acknowledged."""
        return self._projector.position < self._owed

    def unseen(self) -> Awaitable[None] | None:
        """Return what a read has to await before it asks the tables, or None if they have everything that was acknowledged."""
        return self._wait() if self.pending else None

    async def _wait(self) -> None:
        owed = self._owed
        if self._projector.position < self._missed:
            return
        try:
            await self._projector.wait_for(owed, self._seconds)
        except (Behind, ProjectorStopped) as reason:
            self._missed = owed
            _log.warning("reads are answered before the tables have what was acknowledged", sequence=owed, reason=str(reason))
