"""The rules of the scheduled check for updates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from eventlog.testing.scenario import given
from gctd.domain.registry import REGISTRY
from gctd.domain.schedule import ABANDONED, SCHEDULE, BeginUpdateCheck, EndUpdateCheck, UpdateCheckBegun, UpdateCheckEnded

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
BEGUN = UpdateCheckBegun(round=1, server="a", at=AT)
ENDED = UpdateCheckEnded(round=1, projects=3, scheduled=1, failed=0, at=AT + timedelta(minutes=1))
END = EndUpdateCheck(round=1, server="a", projects=3, scheduled=1, failed=0, at=ENDED.at)


def begin(after: timedelta, every: timedelta = HOUR) -> BeginUpdateCheck:
    return BeginUpdateCheck(server="b", every=every, at=AT + after)


def next_round(after: timedelta) -> UpdateCheckBegun:
    return UpdateCheckBegun(round=2, server="b", at=AT + after)


def test_the_first_round_begins_at_once_and_the_next_after_the_interval() -> None:
    given(SCHEDULE, registry=REGISTRY).when(begin(timedelta())).then(attrs.evolve(BEGUN, server="b"))
    ended = given(SCHEDULE, BEGUN, ENDED, registry=REGISTRY)
    ended.when(begin(HOUR - timedelta(seconds=1))).then()
    given(SCHEDULE, BEGUN, ENDED, registry=REGISTRY).when(begin(HOUR)).then(next_round(HOUR))


def test_one_of_two_servers_does_a_round() -> None:
    given(SCHEDULE, BEGUN, registry=REGISTRY).when(begin(timedelta(seconds=1))).then()
    given(SCHEDULE, BEGUN, registry=REGISTRY).when(END).then(ENDED)
    given(SCHEDULE, BEGUN, registry=REGISTRY).when(attrs.evolve(END, server="b")).then()
    given(SCHEDULE, BEGUN, ENDED, registry=REGISTRY).when(END).then()


@pytest.mark.parametrize(("every", "after"), [(HOUR, HOUR), (timedelta(seconds=5), ABANDONED)])
def test_a_round_whose_server_stopped_is_followed_by_another(every: timedelta, after: timedelta) -> None:
    given(SCHEDULE, BEGUN, registry=REGISTRY).when(begin(after - timedelta(seconds=1), every)).then()
    given(SCHEDULE, BEGUN, registry=REGISTRY).when(begin(after, every)).then(next_round(after))
