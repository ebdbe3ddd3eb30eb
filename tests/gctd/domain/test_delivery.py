"""The rules of deliveries of webhooks, as given/when/then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from eventlog.testing.scenario import given
from gctd.domain import delivery as d
from gctd.domain.errors import NotFound, Overtaken, Refused
from gctd.domain.registry import REGISTRY

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
RECEIVED = d.DeliveryReceived(
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
SCHEDULED = d.DeliveryScheduled(tasks=("task-1",), at=AT)
DECIDED = d.ReportDecided(state="success", description="gate passed", at=AT)
ATTEMPTED = d.ReportAttempted(part=d.Part.STATUS, attempt=1, server="a", at=AT)
DELIVERED = d.ReportDelivered(part=d.Part.STATUS, at=AT)
COMMENTING = attrs.evolve(ATTEMPTED, part=d.Part.COMMENT)
FINISH = d.FinishAttempt(server="a", part=d.Part.STATUS, at=AT)
TO_DECIDED = (RECEIVED, SCHEDULED, DECIDED)


def delivery(*events: d.DeliveryEvent) -> Any:
    return given(d.DELIVERY, *events, registry=REGISTRY)


def test_a_delivery_is_taken_once_and_a_replay_is_refused() -> None:
    delivery().when(d.ReceiveDelivery(received=RECEIVED)).then(RECEIVED)
    delivery(RECEIVED).when(d.ReceiveDelivery(received=RECEIVED)).then()
    replay = d.ReceiveDelivery(received=attrs.evolve(RECEIVED, delivery="2"))
    delivery(RECEIVED).when(replay).then_refused(Refused, match="delivered before")
    delivery().when(d.EndDelivery(reason="no", at=AT)).then_refused(NotFound, match="no such")


def test_tasks_are_queued_once_and_the_result_is_decided_once() -> None:
    schedule = d.ScheduleDelivery(tasks=("task-1",), at=AT)
    delivery(RECEIVED).when(schedule).then(SCHEDULED)
    delivery(RECEIVED, SCHEDULED).when(schedule).then_refused(Overtaken, match="another server")
    decide = d.DecideReport(state="success", description="gate passed", at=AT)
    delivery(RECEIVED).when(decide).then()
    delivery(RECEIVED, SCHEDULED).when(decide).then(DECIDED)
    delivery(*TO_DECIDED).when(decide).then()


def test_a_pull_request_gets_a_status_and_then_a_comment() -> None:
    attempt = d.AttemptReport(server="a", at=AT)
    delivery(*TO_DECIDED).when(attempt).then(ATTEMPTED)
    delivery(*TO_DECIDED, ATTEMPTED).when(FINISH).then(DELIVERED)
    delivery(*TO_DECIDED, ATTEMPTED, DELIVERED).when(attempt).then(COMMENTING)
    ended = d.DeliveryEnded(reported=True, reason="", at=AT)
    comment = d.ReportDelivered(part=d.Part.COMMENT, at=AT)
    both = delivery(*TO_DECIDED, ATTEMPTED, DELIVERED, COMMENTING)
    both.when(attrs.evolve(FINISH, part=d.Part.COMMENT)).then(comment, ended)
    push = attrs.evolve(RECEIVED, number=None)
    delivery(push, SCHEDULED, DECIDED, ATTEMPTED).when(FINISH).then(DELIVERED, ended)


def test_an_attempt_belongs_to_one_server_until_its_claim_ends() -> None:
    other = d.AttemptReport(server="b", at=AT + d.CLAIM - timedelta(seconds=1))
    delivery(*TO_DECIDED, ATTEMPTED).when(other).then()
    later = AT + d.CLAIM
    again = d.ReportAttempted(part=d.Part.STATUS, attempt=2, server="b", at=later)
    delivery(*TO_DECIDED, ATTEMPTED).when(attrs.evolve(other, at=later)).then(again)
    delivery(*TO_DECIDED, ATTEMPTED, again).when(FINISH).then()  # what the first server reports too late


def test_a_failed_attempt_is_followed_by_another_until_patience_ends() -> None:
    failed = attrs.evolve(FINISH, reason="status 502", pause=timedelta(seconds=30))
    first = d.ReportAttemptFailed(part=d.Part.STATUS, reason="status 502", retry_at=AT + timedelta(seconds=30), at=AT)
    delivery(*TO_DECIDED, ATTEMPTED).when(failed).then(first)
    soon = d.AttemptReport(server="a", at=AT + timedelta(seconds=29))
    delivery(*TO_DECIDED, ATTEMPTED, first).when(soon).then()
    ended = d.DeliveryEnded(reported=False, reason="status: status 502", at=AT)
    delivery(*TO_DECIDED, ATTEMPTED).when(attrs.evolve(failed, permanent=True)).then(first, ended)
    late = attrs.evolve(failed, at=AT + d.PATIENCE)
    state = d.DELIVERY.fold([*TO_DECIDED, ATTEMPTED])
    assert [type(event) for event in d.decide(late, state)] == [d.ReportAttemptFailed, d.DeliveryEnded]


@for_all(attempts=st.integers(1, 200))
def test_the_wait_between_attempts_grows_to_a_bound(attempts: int) -> None:
    state = d.DELIVERY.fold([*TO_DECIDED, attrs.evolve(ATTEMPTED, attempt=attempts)])
    (failed, *_) = d.decide(attrs.evolve(FINISH, reason="no"), state)
    assert isinstance(failed, d.ReportAttemptFailed)
    assert d.FIRST_RETRY <= failed.retry_at - AT <= d.LONGEST_RETRY


@pytest.mark.parametrize("events", [(RECEIVED,), (RECEIVED, SCHEDULED), TO_DECIDED])
def test_a_delivery_that_cannot_be_answered_ends_with_the_reason(events: tuple[d.DeliveryEvent, ...]) -> None:
    end = d.EndDelivery(reason="gone", at=AT)
    ended = d.DeliveryEnded(reported=False, reason="gone", at=AT)
    delivery(*events).when(end).then(ended)
    delivery(*events, ended).when(end).then()
