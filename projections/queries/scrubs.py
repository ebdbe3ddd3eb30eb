"""The state of the passes over a log, kept in the tables: a restart does not forget findings, and all processes show them."""

from __future__ import annotations

import msgspec
import structlog

from eventlog import Unavailable
from eventlog.admin.scrub_state import ScrubState
from projections.errors import ProjectionError
from projections.store import Store

log = structlog.get_logger(__name__)


class KeptScrubs:
    """The state of the passes over the log of one stream (`eventlog.admin.scrub_state.ScrubMemory`)."""

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._stream = stream

    async def load(self) -> ScrubState | None:
        """The state that was kept last, or None. Raises Unavailable."""
        try:
            text = await self._store.scrubs(self._stream)
        except ProjectionError as error:
            raise Unavailable(str(error)) from error
        try:
            return None if text is None else msgspec.json.decode(text, type=ScrubState)
        except msgspec.DecodeError as error:  # of another version of the program: the next pass replaces it
            log.warning("the state of scrubbing cannot be read", stream=self._stream, reason=str(error))
            return None

    async def keep(self, state: ScrubState) -> None:
        """Keep a state. Raises Unavailable, also in a process that does not lead."""
        try:
            await self._store.keep_scrubs(self._stream, msgspec.json.encode(state).decode())
        except ProjectionError as error:
            raise Unavailable(str(error)) from error
