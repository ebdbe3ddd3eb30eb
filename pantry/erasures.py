"""Erasing persons: an event says that it is to be, and every process that reads it sees to it that it is.

The event comes first: it is in the log for good, so a process that dies before the key is destroyed, or finds the key in the
keyring again (a backup of it was restored), destroys it when it starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import structlog

from eventlog import Commit, Context, EventLogError
from eventlog.privacy.encryption import PersonalDataCipher
from pantry.domain.person import CATEGORY, PERSON, ErasePerson
from pantry.readmodel.queries import PantryQueries
from projections.errors import ProjectionError
from servicekit.readside import ReadSide

_log = structlog.get_logger(__name__)

_PAUSE = 1.0


class Erasures:
    """Erases persons, and keeps them erased for as long as `run` runs."""

    def __init__(
        self,
        people: PersonalDataCipher,
        queries: PantryQueries,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._people = people
        self._queries = queries
        self._now = now
        self._side: ReadSide | None = None
        self._news = asyncio.Event()
        self._waiting: set[str] = set()

    def serve(self, side: ReadSide) -> None:
        """Work with this read side, whose `on_applied` has `applied`."""
        self._side = side

    async def erase(self, name: str, context: Context) -> int | None:
        """Make what was written of a person unreadable, and give the sequence of the log from which on it is.

        None where nothing of them was there to erase. What they write from now on is kept under a new key. Raises Unavailable.
        """
        assert self._side is not None, "it serves"
        key = await self._people.find(name)
        if key is None:
            return None
        command = ErasePerson(key=key.id, at=self._now())
        outcome = await self._side.commands.execute(PERSON, key.id, command, context)
        await self._people.destroy(key)
        return outcome.sequence

    def applied(self, commits: Sequence[Commit]) -> None:
        """These commits can be read now: whoever is erased by them is forgotten, and what was shown of them."""
        erased = {commit.aggregate.id for commit in commits if commit.category == CATEGORY}
        if erased:
            for id_ in erased:
                self._people.forget(id_)
            assert self._side is not None, "it serves"
            self._side.hub.skip_to(commits[-1].sequence)
            self._waiting |= erased
            self._news.set()

    async def run(self) -> None:
        """Destroy the keys of all who were erased, as they are and wherever one is left, until cancelled."""
        swept = False
        while True:
            some = set(self._waiting)
            try:
                if not swept:
                    some.update(await self._queries.erased())
                left = await self._people.destroy_all(sorted(some)) if some else 0
            except (EventLogError, ProjectionError) as error:
                _log.warning("keys of erased persons wait to be destroyed", reason=str(error))
                await asyncio.sleep(_PAUSE)
                continue
            if left:
                _log.info("keys of erased persons destroyed", keys=left)
            swept = True
            self._waiting -= some
            await self._news.wait()
            self._news.clear()
