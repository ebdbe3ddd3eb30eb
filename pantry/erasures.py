"""Erasing persons: an event requests it, and every process that reads the event ensures it.

The event comes first: it is in the log for good, so a process that dies before the key is destroyed, or finds the key in the
keyring again (a backup of it was restored), destroys it when it starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import structlog

from eventlog import MISSING, Commit, Context, EventLogError, PersonalDataCipher, Unavailable
from pantry.domain.person import CATEGORY, PERSON, ErasePerson
from pantry.readmodel.queries import PantryQueries
from projections import ProjectionError
from servicekit import ReadSide

_log = structlog.get_logger(__name__)

_PAUSE = 1.0
_LOOKS_AGAIN = 5.0
"""Seconds between two looks for keys that are missing, and for another keyring."""


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
        people.erased, people.returned = self._erased, self._returned
        self._queries = queries
        self._now = now
        self._side = side
        self._news = asyncio.Event()
        self._waiting: set[str] = set()
        self._swept = False
        self._sequence = 0

    async def erase(self, name: str, context: Context) -> int | None:
        """Make the data of a person unreadable, and return the sequence of the log from which on it is erased.

        None if the person had no data to erase. Later data of the person is kept under a new key. Raises Unavailable, also while
        keys are missing that can be the person's: a key that is there is destroyed before.
        """
        await self._look()
        key = await self._people.find(name)
        if key is None:
            self._check_complete()
            return None
        command = ErasePerson(key=key.id, at=self._now())
        outcome = await self._side.commands.execute(PERSON, key.id, command, context)
        await self._people.destroy(key)
        self._check_complete()
        return outcome.sequence

    def note(self) -> str | None:
        """Return the keys that are missing, None without one."""
        count = len(self._people.missing)
        if not count:
            return None
        return (
            f"keys of persons: {count} are missing, and their fields read {MISSING}: restore the stream with the keys, "
            "see docs/guides/operation.md, Backup and restore"
        )

    def _check_complete(self) -> None:
        if (note := self.note()) is not None:
            raise Unavailable(f"the person cannot be erased completely: {note}; then repeat the erasure")

    async def _erased(self, now: bool) -> Sequence[str]:  # noqa: FBT001 - the shape of `PersonalDataCipher.erased`
        try:
            if now:
                await self._side.catch_up()
            return await self._queries.erased()
        except ProjectionError as error:
            raise Unavailable(f"the erasures cannot be read: {error}") from error

    async def _look(self) -> None:
        try:
            await self._side.catch_up()
            await self._people.look_for(await self._queries.key_ids(), reload=True)
        except ProjectionError as error:
            raise Unavailable(f"the ids of keys cannot be read: {error}") from error

    def applied(self, commits: Sequence[Commit]) -> None:
        """Handle commits that can be read now: forget the keys of erased persons, and their shown data."""
        self._sequence = commits[-1].sequence
        erased = {commit.aggregate.id for commit in commits if commit.category == CATEGORY}
        if erased:
            for id_ in erased:
                self._people.forget(id_)
                self._side.hub.skip_to(commits[-1].sequence)
            self._waiting |= erased
            self._news.set()

    def _returned(self) -> None:
        """Handle missing keys that are there again: frames were made without them, and erased persons can have keys again."""
        self._side.hub.skip_to(max(self._sequence, self._side.hub.sequence))
        self._swept = False
        self._news.set()

    async def run(self) -> None:
        """Destroy the keys of all who were erased, wherever one is left, and look for missing keys, until cancelled."""
        while True:
            some, sweeps = set(self._waiting), not self._swept or bool(self._people.missing)
            self._swept = True  # unless keys come back from here on
            try:
                sweeps = await self._people.is_replaced() or sweeps
                if sweeps:
                    some.update(await self._queries.erased())
                left = await self._people.destroy_all(sorted(some)) if some else 0
                if sweeps:
                    await self._look()
            except (EventLogError, ProjectionError) as error:
                _log.warning("keys of erased persons wait to be destroyed", reason=str(error))
                self._swept = False
                await asyncio.sleep(_PAUSE)
                continue
            if left:
                _log.info("keys of erased persons destroyed", keys=left)
            self._waiting -= some
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _LOOKS_AGAIN)
            self._news.clear()
