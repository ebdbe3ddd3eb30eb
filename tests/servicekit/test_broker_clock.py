"""A service tells the time by the broker's clock if the clock of its machine is wrong, and `/readyz` names that clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from servicekit.broker_watch import BrokerClock

BEGIN = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Machine:
    """A machine whose clock can be set; `true` is the broker's time."""

    def __init__(self) -> None:
        self.true = BEGIN
        self.ahead = timedelta()
        self.clock = BrokerClock(lambda: self.true + self.ahead, self._elapsed)

    def _elapsed(self) -> float:
        return (self.true - BEGIN).total_seconds()

    def look(self, **state: Any) -> None:
        """A look at the broker that takes half a second."""
        began = self.clock.elapsed()
        self.true += timedelta(seconds=0.25)
        info = {"ts": f"{self.true:%Y-%m-%dT%H:%M:%S.%f}789Z", "state": {"messages": 0, **state}}
        self.true += timedelta(seconds=0.25)
        self.clock.saw(began, info)


def test_a_clock_that_agrees_with_the_brokers_is_used() -> None:
    machine = Machine()
    assert machine.clock.now() == BEGIN
    machine.ahead = timedelta(seconds=1.5)
    machine.look(messages=1, last_ts="2026-11-29T11:00:00Z")
    assert machine.clock.now() == machine.true + machine.ahead
    assert machine.clock.note() is None


@pytest.mark.parametrize(("days", "way"), [(2, "2 days, 0:00:00 ahead of"), (-1, "1 day, 0:00:00 behind")])
def test_with_a_wrong_clock_the_time_is_the_brokers_and_the_note_names_the_clock(days: int, way: str) -> None:
    machine = Machine()
    machine.look()
    machine.ahead = timedelta(days=days)  # also if it is set between two looks
    machine.true += timedelta(seconds=3)
    assert abs(machine.clock.now() - machine.true) < timedelta(milliseconds=1)
    assert machine.clock.note() == (f"the clock of this server is {way} the broker's: events get the broker's time. Set it right")
    machine.ahead = timedelta()
    assert (machine.clock.now(), machine.clock.note()) == (machine.true, None)


def test_the_note_names_the_clock_of_a_broker_that_has_stored_a_message_in_the_future() -> None:
    machine = Machine()
    machine.look(messages=7, last_ts="2026-12-01T12:00:00.25Z")
    assert machine.clock.note() == (
        "the last message was stored 2 days, 0:00:00 ahead of now: the broker's clock was ahead, or is behind. Events of that "
        "time have false times; their order is right"
    )
    assert machine.clock.now() == machine.true
