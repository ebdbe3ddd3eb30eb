"""The event log, for people who look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from eventlog import Commit, EventFilter, EventLog, Page, UndecodableCommit, search_events
from gctd.domain.errors import Refused
from servicekit import NotWritten

AT_A_TIME = 2
"""Searches that run at a time: each may read 20,000 commits."""


@attrs.frozen
class LogBrowser:
    """The log, for people who look at it: a few at a time."""

    log: EventLog
    _turn: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(AT_A_TIME))

    async def page(self, wanted: EventFilter) -> Page:
        """Return a page as `eventlog.search_events` does."""
        async with self._turn:
            return await search_events(self.log, wanted)

    async def require(self, sequence: int) -> None:
        """Raise NotWritten if the log does not have that sequence."""
        head = await self.log.head()
        if sequence > head.last:
            raise NotWritten(f"the log ends at sequence {head.last}; {sequence} was asked for")


@contextmanager
def reading(commit: Commit) -> Iterator[None]:
    """Read a commit that need not be readable. Raises Refused if it is not, or its state is lost."""
    try:
        yield
    except UndecodableCommit as error:
        raise Refused(f"{commit.subject} as it was at sequence {commit.sequence} cannot be read: {error}") from error
