"""The commands on a delivery, and the events that they cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from gctd.domain.delivery import events
from gctd.domain.delivery.state import Delivery, DeliveryStatus, evolve
from gctd.domain.errors import NotFound, Overtaken, Refused

CLAIM = timedelta(seconds=30)
"""Time for which the server that attempts a report has it alone."""
PATIENCE = timedelta(hours=24)
"""Time after the decision for which a report is attempted again."""
FIRST_RETRY, LONGEST_RETRY = timedelta(seconds=2), timedelta(minutes=15)


@attrs.frozen(kw_only=True)
class ReceiveDelivery:
    """Take a delivery. A known delivery does not change."""

    received: events.DeliveryReceived


@attrs.frozen(kw_only=True)
class ScheduleDelivery:
    """The commit is analysed by these tasks."""

    tasks: tuple[str, ...]
    at: datetime


@attrs.frozen(kw_only=True)
class DecideReport:
    """The result is known. The fields are the ones of `ReportDecided`."""

    state: str
    description: str
    not_judged: tuple[str, ...]
    at: datetime


@attrs.frozen(kw_only=True)
class AttemptReport:
    """A server is about to send the next part."""

    server: str
    at: datetime


@attrs.frozen(kw_only=True)
class FinishAttempt:
    """The forge took the part (`reason` is empty), or did not. `permanent`: another attempt would end the same.

    `pause` is the time for which the forge asks not to be asked.
    """

    server: str
    part: events.Part
    at: datetime
    reason: str = ""
    permanent: bool = False
    pause: timedelta = timedelta()


@attrs.frozen(kw_only=True)
class EndDelivery:
    """There will be no report."""

    reason: str
    at: datetime


DeliveryCommand = ReceiveDelivery | ScheduleDelivery | DecideReport | AttemptReport | FinishAttempt | EndDelivery


def decide(command: DeliveryCommand, state: Delivery | None) -> Sequence[events.DeliveryEvent]:
    """Return the events of a command: none if the delivery has moved on. Raises NotFound, Refused, Overtaken."""
    if isinstance(command, ReceiveDelivery):
        if state is not None and state.delivery != command.received.delivery:
            raise Refused("this body was delivered before, under another delivery id")
        return [command.received] if state is None else []
    if state is None:
        raise NotFound("no such delivery")
    match command:
        case ScheduleDelivery():
            if state.status is not DeliveryStatus.RECEIVED:
                raise Overtaken("another server has queued the tasks of this delivery")  # which it must not do twice
            return [events.DeliveryScheduled(tasks=command.tasks, at=command.at)]
        case DecideReport():
            return [events.ReportDecided(**attrs.asdict(command))] if state.status is DeliveryStatus.SCHEDULED else []
        case AttemptReport():
            return _attempt(command, state)
        case FinishAttempt():
            return _finish(command, state)
        case EndDelivery():
            ended = state.status is DeliveryStatus.ENDED
            return [] if ended else [events.DeliveryEnded(reported=False, reason=command.reason, at=command.at)]


def may_attempt(state: Delivery, at: datetime) -> bool:
    """Report whether an attempt may begin: the result is decided, no server works on it, and no pause is active."""
    if state.status is not DeliveryStatus.DECIDED or state.next_part is None:
        return False
    if state.attempted_at is not None and at < state.attempted_at + CLAIM:
        return False
    return state.retry_at is None or at >= state.retry_at


def _attempt(command: AttemptReport, state: Delivery) -> Sequence[events.DeliveryEvent]:
    if not may_attempt(state, command.at) or (part := state.next_part) is None:
        return []
    return [events.ReportAttempted(part=part, attempt=state.attempt + 1, server=command.server, at=command.at)]


def _finish(command: FinishAttempt, state: Delivery) -> Sequence[events.DeliveryEvent]:
    if state.status is not DeliveryStatus.DECIDED or state.next_part is not command.part or state.server != command.server:
        return []
    if not command.reason:
        delivered = events.ReportDelivered(part=command.part, at=command.at)
        if evolve(state, delivered).next_part is None:
            return [delivered, events.DeliveryEnded(reported=True, reason="", at=command.at)]
        return [delivered]
    assert state.decided_at is not None, "an attempt is made after the decision"
    wait = max(min(FIRST_RETRY * 2 ** min(state.attempt - 1, 20), LONGEST_RETRY), command.pause)
    failed = events.ReportAttemptFailed(part=command.part, reason=command.reason, retry_at=command.at + wait, at=command.at)
    if command.permanent or command.at + wait > state.decided_at + PATIENCE:
        return [failed, events.DeliveryEnded(reported=False, reason=f"{command.part}: {command.reason}", at=command.at)]
    return [failed]
