"""Erasing persons: an event requests it, and every process that reads the event ensures it.

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
    """Erases persons, and keeps them erased while `run` runs; `side` calls `applied`."""

    def __init__(
        self,
        people: PersonalDataCipher,
        queries: PantryQueries,
        side: ReadSide,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._people = people
        self._queries = queries
        self._now = now
        self._side = side
        self._news = asyncio.Event()
        self._waiting: set[str] = set()

    async def erase(self, name: str, context: Context) -> int | None:
        """Make the data of a person unreadable, and return the sequence of the log from which on it is erased.

        None if the person had no data to erase. Later data of the person is kept under a new key. Raises Unavailable.
        """
        key = await self._people.find(name)
        if key is None:
            return None
        command = ErasePerson(key=key.id, at=self._now())
        outcome = await self._side.commands.execute(PERSON, key.id, command, context)
        await self._people.destroy(key)
        return outcome.sequence

    def applied(self, commits: Sequence[Commit]) -> None:
        """Handle commits that can be read now: forget the keys of erased persons, and their shown data."""
        erased = {commit.aggregate.id for commit in commits if commit.category == CATEGORY}
        if erased:
            for id_ in erased:
                self._people.forget(id_)
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
