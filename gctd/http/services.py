"""What the handlers of the API work with."""

from __future__ import annotations

import attrs
import structlog

from eventlog.blobs import Blobs
from eventlog.presence import Presence
from gctd.control.tracker import Tracker
from httpkit.sse import Hub
from projections.errors import Behind
from projections.projector import Projector
from projections.tracker.queries import TrackerQueries

_log = structlog.get_logger(__name__)

READ_YOUR_WRITES = 5.0
"""Seconds for which the answer to a command waits for the read model."""


@attrs.frozen(kw_only=True)
class Services:
    """The parts of a control plane."""

    tracker: Tracker
    queries: TrackerQueries
    projector: Projector
    blobs: Blobs
    presence: Presence
    hub: Hub

    async def seen(self, sequence: int) -> int:
        """Wait until the read model has what a command wrote, and give that sequence.

        The command took effect, whether or not the read model keeps up: then the answer is sent all the same, and a reader
        who must not be behind asks with `min_seq`.
        """
        try:
            await self.projector.wait_for(sequence, READ_YOUR_WRITES)
        except Behind as behind:
            _log.warning("answer sent before the read model has it", sequence=sequence, reason=str(behind))
        return sequence
