"""The one clock of a system: the broker's, which each of its processes can read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

MOST = timedelta(seconds=2)
"""The difference between two clocks that is taken for none: a look at the broker takes up to a second."""
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts also while the machine sleeps, and cannot be set."""


def _elapsed() -> float:
    return time.clock_gettime(_ELAPSED)


def wall_time() -> datetime:
    """The clock of this machine, which may be wrong: aware, UTC."""
    return datetime.now(UTC)


@attrs.frozen
class _Seen:
    at: float
    time: datetime
    last: datetime | None


class BrokerClock:
    """Tells the time by this machine's clock, or by the broker's if the two do not agree.

    So an event has the same time whichever process writes it. `elapsed` counts seconds and cannot be set.
    """

    def __init__(self, wall: Callable[[], datetime] | None = None, elapsed: Callable[[], float] = _elapsed) -> None:
        self._wall = wall or wall_time
        self._elapsed = elapsed
        self._seen: _Seen | None = None

    def elapsed(self) -> float:
        """The moment of a request, for `saw`."""
        return self._elapsed()

    def saw(self, began: float, info: Mapping[str, Any]) -> None:
        """Take the answer to a request for the state of a stream into account, which was sent at `began`."""
        if (told := _time(info.get("ts"))) is not None:
            middle = (began + self._elapsed()) / 2
            state = info.get("state", {})
            self._seen = _Seen(middle, told, _time(state.get("last_ts")) if state.get("messages") else None)

    def now(self) -> datetime:
        """The time: aware, UTC. Before the first look at the broker it is the time of this machine."""
        wall = self._wall()
        if self._seen is None:
            return wall
        told = self._seen.time + timedelta(seconds=self._elapsed() - self._seen.at)
        return wall if abs(wall - told) <= MOST else told

    def note(self) -> str | None:
        """Return which clock is wrong, or None: this machine's, or the broker's when it stored the last message."""
        if self._seen is None:
            return None
        told = self._seen.time + timedelta(seconds=self._elapsed() - self._seen.at)
        ahead = self._wall() - told
        if abs(ahead) > MOST:
            way = "ahead of" if ahead > timedelta() else "behind"
            length = timedelta(seconds=round(abs(ahead).total_seconds()))
            return f"the clock of this server is {length} {way} the broker's: events get the broker's time. Set it right"
        if self._seen.last is not None and self._seen.last - told > MOST:
            length = timedelta(seconds=round((self._seen.last - told).total_seconds()))
            return (
                f"the last message was stored {length} ahead of now: the broker's clock was ahead, or is behind. Events of that "
                "time have false times; their order is right"
            )
        return None


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
