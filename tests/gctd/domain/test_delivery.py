"""The rules of deliveries of webhooks, as given/when/then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from eventlog.testing.scenario import given
from gctd.domain.delivery import DELIVERY
from gctd.domain.delivery.commands import (
    CLAIM,
    FIRST_RETRY,
    LONGEST_RETRY,
    PATIENCE,
    AttemptReport,
    DecideReport,
    EndDelivery,
    FinishAttempt,
    ReceiveDelivery,
    ScheduleDelivery,
    decide,
)
from gctd.domain.delivery.events import (
    DeliveryEnded,
    DeliveryEvent,
    DeliveryReceived,
    DeliveryScheduled,
    Part,
    ReportAttempted,
    ReportAttemptFailed,
    ReportDecided,
    ReportDelivered,
)
from gctd.domain.errors import NotFound, Overtaken, Refused
from gctd.domain.registry import REGISTRY

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
RECEIVED = DeliveryReceived(
    id="d1",
    delivery="1",
    forge="github.com",
    repo_id="r1",
    repo_url="https://github.com/a/b",
    path="a/b",
    ref="main",
    commit_sha="c" * 40,
    base="main",
    number=7,
    at=AT,
)
SCHEDULED = DeliveryScheduled(tasks=("task-1",), at=AT)
DECIDED = ReportDecided(state="success", description="gate passed", not_judged=(), at=AT)
ATTEMPTED = ReportAttempted(part=Part.STATUS, attempt=1, server="a", at=AT)
DELIVERED = ReportDelivered(part=Part.STATUS, at=AT)
COMMENTING = attrs.evolve(ATTEMPTED, part=Part.COMMENT)
FINISH = FinishAttempt(server="a", part=Part.STATUS, at=AT)
TO_DECIDED = (RECEIVED, SCHEDULED, DECIDED)


def delivery(*events: DeliveryEvent) -> Any:
    return given(DELIVERY, *events, registry=REGISTRY)


def test_a_delivery_is_taken_once_and_a_replay_is_refused() -> None:
    delivery().when(ReceiveDelivery(received=RECEIVED)).then(RECEIVED)
    delivery(RECEIVED).when(ReceiveDelivery(received=RECEIVED)).then()
    replay = ReceiveDelivery(received=attrs.evolve(RECEIVED, delivery="2"))
    delivery(RECEIVED).when(replay).then_refused(Refused, match="delivered before")
    delivery().when(EndDelivery(reason="no", at=AT)).then_refused(NotFound, match="no such")


def test_tasks_are_queued_once_and_the_result_is_decided_once() -> None:
    schedule = ScheduleDelivery(tasks=("task-1",), at=AT)
    delivery(RECEIVED).when(schedule).then(SCHEDULED)
    delivery(RECEIVED, SCHEDULED).when(schedule).then_refused(Overtaken, match="another server")
    decide = DecideReport(state="success", description="gate passed", not_judged=(), at=AT)
    delivery(RECEIVED).when(decide).then()
    delivery(RECEIVED, SCHEDULED).when(decide).then(DECIDED)
    delivery(*TO_DECIDED).when(decide).then()


def test_a_pull_request_gets_a_status_and_then_a_comment() -> None:
    attempt = AttemptReport(server="a", at=AT)
    delivery(*TO_DECIDED).when(attempt).then(ATTEMPTED)
    delivery(*TO_DECIDED, ATTEMPTED).when(FINISH).then(DELIVERED)
    delivery(*TO_DECIDED, ATTEMPTED, DELIVERED).when(attempt).then(COMMENTING)
    ended = DeliveryEnded(reported=True, reason="", at=AT)
    comment = ReportDelivered(part=Part.COMMENT, at=AT)
    both = delivery(*TO_DECIDED, ATTEMPTED, DELIVERED, COMMENTING)
    both.when(attrs.evolve(FINISH, part=Part.COMMENT)).then(comment, ended)
    push = attrs.evolve(RECEIVED, number=None)
    delivery(push, SCHEDULED, DECIDED, ATTEMPTED).when(FINISH).then(DELIVERED, ended)


def test_an_attempt_belongs_to_one_server_until_its_claim_ends() -> None:
    other = AttemptReport(server="b", at=AT + CLAIM - timedelta(seconds=1))
    delivery(*TO_DECIDED, ATTEMPTED).when(other).then()
    later = AT + CLAIM
    again = ReportAttempted(part=Part.STATUS, attempt=2, server="b", at=later)
    delivery(*TO_DECIDED, ATTEMPTED).when(attrs.evolve(other, at=later)).then(again)
    delivery(*TO_DECIDED, ATTEMPTED, again).when(FINISH).then()  # what the first server reports too late


def test_a_failed_attempt_is_followed_by_another_until_patience_ends() -> None:
    failed = attrs.evolve(FINISH, reason="status 502", pause=timedelta(seconds=30))
    first = ReportAttemptFailed(part=Part.STATUS, reason="status 502", retry_at=AT + timedelta(seconds=30), at=AT)
    delivery(*TO_DECIDED, ATTEMPTED).when(failed).then(first)
    soon = AttemptReport(server="a", at=AT + timedelta(seconds=29))
    delivery(*TO_DECIDED, ATTEMPTED, first).when(soon).then()
    ended = DeliveryEnded(reported=False, reason="status: status 502", at=AT)
    delivery(*TO_DECIDED, ATTEMPTED).when(attrs.evolve(failed, permanent=True)).then(first, ended)
    late = attrs.evolve(failed, at=AT + PATIENCE)
    state = DELIVERY.fold([*TO_DECIDED, ATTEMPTED])
    assert [type(event) for event in decide(late, state)] == [ReportAttemptFailed, DeliveryEnded]


@for_all(attempts=st.integers(1, 200))
def test_the_wait_between_attempts_grows_to_a_bound(attempts: int) -> None:
    state = DELIVERY.fold([*TO_DECIDED, attrs.evolve(ATTEMPTED, attempt=attempts)])
    (failed, *_) = decide(attrs.evolve(FINISH, reason="no"), state)
    assert isinstance(failed, ReportAttemptFailed)
    assert FIRST_RETRY <= failed.retry_at - AT <= LONGEST_RETRY


@pytest.mark.parametrize("events", [(RECEIVED,), (RECEIVED, SCHEDULED), TO_DECIDED])
def test_a_delivery_that_cannot_be_answered_ends_with_the_reason(events: tuple[DeliveryEvent, ...]) -> None:
    end = EndDelivery(reason="gone", at=AT)
    ended = DeliveryEnded(reported=False, reason="gone", at=AT)
    delivery(*events).when(end).then(ended)
    delivery(*events, ended).when(end).then()
