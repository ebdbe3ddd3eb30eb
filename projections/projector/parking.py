"""Aggregates that are parked because one of their commits cannot be applied, with the waiting commits and the reason.

If the rows of each key come from one aggregate, unparking all of it in order gives the same rows as without the error. For any
other projection a rebuild does.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus

import attrs

from eventlog import Commit, EventLogError
from projections.store import Parked, Place

_MOST_TEXT = 8_000
"""Characters of a traceback that are kept: its end, which says most."""


class Parking:
    """The parked aggregates as they are stored, and the changes of the batch that is being made.

    `now` is the time of newly parked aggregates.
    """

    def __init__(self, stored: Mapping[Place, Parked], now: datetime) -> None:
        self._stored = stored
        self._now = now
        self._projections = {projection for projection, _ in stored}
        self.changed: dict[Place, Parked] = {}
        """Aggregates that are newly parked, or have more waiting commits."""

    def holds(self, projection: str) -> bool:
        """Whether a projection has anything parked."""
        return projection in self._projections

    def take(self, projection: str, commit: Commit) -> bool:
        """Whether the commit's aggregate is parked: then it waits with it."""
        place = (projection, commit.subject)
        found = self.changed.get(place) or self._stored.get(place)
        if found is None:
            return False
        if commit.sequence > found.last:
            self.changed[place] = attrs.evolve(found, waiting=found.waiting + 1, last=commit.sequence)
        return True

    def park(self, projection: str, commit: Commit, error: Exception) -> None:
        """Park the aggregate of a commit that cannot be applied. If it is parked already, the commit waits with the others."""
        if not self.take(projection, commit):
            self._projections.add(projection)
            self.changed[projection, commit.subject] = parked(projection, commit, error, self._now)


def parked(projection: str, commit: Commit, error: Exception, at: datetime) -> Parked:
    """The aggregate of a commit, parked for an error at that commit."""
    return Parked(
        projection=projection,
        subject=commit.subject,
        sequence=commit.sequence,
        types=_types(commit),
        error=reason_of(error),
        traceback="".join(traceback.format_exception(error))[-_MOST_TEXT:],
        at=at,
        waiting=1,
        last=commit.sequence,
    )


def reason_of(error: Exception) -> str:
    """Return an error in one line, for users."""
    return str(error) if isinstance(getattr(error, "status", None), HTTPStatus) else repr(error)


def by_place(all_parked: Iterable[Parked]) -> dict[Place, Parked]:
    """Return the parked aggregates by projection and subject."""
    return {one.place: one for one in all_parked}


def _types(commit: Commit) -> str:
    try:
        return ", ".join(event.type for event in commit.body.events)
    except EventLogError:
        return ""
