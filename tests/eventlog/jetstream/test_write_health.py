"""The health of appends, from their results and from looks at the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eventlog.errors import Conflict, EventLogError, OutcomeUnknown, Unavailable
from eventlog.jetstream.fence import STREAM_FULL, Look, Room, WriteHealth, WriteState

ROOM = Room("stream", "the stream S", 100, 1000, 10, STREAM_FULL, "raise it")
FULL = Room("stream", "the stream S", 995, 1000, 10, STREAM_FULL, "raise it")


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Kept:
    """The health of writes, with the steps of a test."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.writes = WriteHealth(self.clock)

    def append(self, error: BaseException | None = None, *, takes: float = 0.0, size: int = 50, away: bool = False) -> None:
        try:
            with self.writes.appending(size):
                self.clock.now += takes
                if away:
                    self.look(monitored=False, error="no answer")
                if error is not None:
                    raise error
        except (EventLogError, asyncio.CancelledError):
            pass

    def look(
        self,
        *,
        server: str = "one",
        monitored: bool = True,
        fault: str | None = None,
        rooms: Sequence[Room] = (ROOM,),
        error: str | None = None,
    ) -> None:
        self.clock.now += 0.1
        self.writes.saw(Look(at=self.clock.now, server=server, monitored=monitored, fault=fault, rooms=rooms, error=error))

    def state(self) -> WriteState:
        return self.writes.now().state


@pytest.fixture
def kept() -> Kept:
    return Kept()


def refused(code: int | None) -> Unavailable:
    error = Unavailable("maximum bytes exceeded")
    error.code = code
    return error


def test_it_is_unknown_until_something_was_appended_or_seen(kept: Kept) -> None:
    assert kept.state() is WriteState.UNKNOWN
    kept.look(monitored=False)
    assert kept.state() is WriteState.UNKNOWN
    kept.append()
    assert kept.state() is WriteState.OK


def test_a_refusal_for_want_of_room_holds_until_there_is_room_for_that_append(kept: Kept) -> None:
    kept.append(refused(STREAM_FULL), size=500)
    kept.look(rooms=[Room("stream", "the stream S", 600, 1000, 10, STREAM_FULL, "")])
    writes = kept.writes.now()
    assert (writes.state, writes.code) == (WriteState.REFUSED, STREAM_FULL)
    kept.look(rooms=[ROOM])
    assert kept.state() is WriteState.OK


def test_room_elsewhere_is_no_room_for_what_was_refused(kept: Kept) -> None:
    kept.append(refused(10023))
    kept.look()
    assert kept.state() is WriteState.REFUSED


def test_an_acknowledged_append_ends_every_trouble(kept: Kept) -> None:
    kept.append(OutcomeUnknown("no answer"))
    assert kept.state() is WriteState.SILENT
    kept.append()
    assert kept.state() is WriteState.OK


def test_silence_holds_while_the_broker_cannot_be_looked_at_and_then_it_is_not_known_any_more(kept: Kept) -> None:
    kept.look(monitored=False)
    kept.append(OutcomeUnknown("no answer"), takes=5)
    kept.look(monitored=False)
    assert kept.state() is WriteState.SILENT
    kept.clock.now += 40
    assert kept.state() is WriteState.UNKNOWN


@pytest.mark.parametrize("proof", ["another server", "its health"])
def test_silence_ends_when_the_broker_was_started_again_or_says_that_it_is_healthy(kept: Kept, proof: str) -> None:
    kept.look(monitored=False)
    kept.append(OutcomeUnknown("no answer"), takes=5)
    kept.look(server="two" if proof == "another server" else "one", monitored=proof == "its health")
    assert not kept.writes.now().fail


def test_silence_of_a_broker_that_did_not_answer_at_all_ends_with_that(kept: Kept) -> None:
    kept.look(monitored=False)
    kept.append(OutcomeUnknown("no answer"), takes=5, away=True)
    assert kept.state() is WriteState.SILENT
    kept.look(monitored=False)
    assert not kept.writes.now().fail


def test_an_append_that_is_not_answered_shows_before_it_has_failed(kept: Kept) -> None:
    with kept.writes.appending(1):
        assert kept.state() is not WriteState.SILENT
        kept.clock.now += 2.1
        assert kept.state() is WriteState.SILENT
    assert kept.state() is WriteState.OK


def test_an_append_that_waited_while_writes_were_closed_is_no_silence_of_the_broker(kept: Kept) -> None:
    with kept.writes.appending(1):
        kept.clock.now += 2.1
        kept.look(fault="the stream is being repaired")
        assert kept.state() is WriteState.CLOSED
        kept.look()
        assert kept.state() is WriteState.OK
        kept.clock.now += 2.2
        assert kept.state() is WriteState.SILENT


def test_a_caller_that_goes_away_before_the_answer_leaves_silence_behind(kept: Kept) -> None:
    kept.append(asyncio.CancelledError(), takes=1.8)
    assert kept.state() is WriteState.SILENT


def test_a_lost_race_says_nothing_of_the_store(kept: Kept) -> None:
    kept.append()
    kept.append(Conflict("another was first"))
    assert kept.state() is WriteState.OK


def test_what_the_broker_says_against_itself_counts_as_long_as_it_is_fresh_and_refuses_appends(kept: Kept) -> None:
    kept.append()
    kept.look(fault="write error")
    assert kept.state() is WriteState.CLOSED
    with pytest.raises(Unavailable, match="nothing was stored: write error"):
        kept.writes.check()
    kept.clock.now += 10
    kept.writes.check()


def test_a_limit_is_warned_of_before_it_is_reached(kept: Kept) -> None:
    kept.append()
    kept.look(rooms=[Room("stream", "the stream S", 860, 1000, 10, STREAM_FULL, "raise it")])
    assert kept.writes.warnings() == ["86% of a limit is used: the stream S: 860 of 1,000 bytes are used; raise it"]
    assert kept.state() is WriteState.OK
    kept.look(rooms=[FULL])
    assert (kept.state(), kept.writes.warnings()) == (WriteState.FULL, [])
