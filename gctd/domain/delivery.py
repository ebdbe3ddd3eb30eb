"""The aggregate of a delivery of a forge's webhook: from the receipt to the status and the comment that answer it.

Its id follows from forge and body. So a delivery that the forge sends again has one effect, and so has a replay under another
delivery id, which no signature covers. Each request to the forge is recorded before it is made (`ReportAttempted`) and after it
succeeded (`ReportDelivered`). A server that finds an attempt without an end looks at the forge first: the request may have had
its effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

import attrs

from eventlog import Decider
from gctd.domain.errors import NotFound, Overtaken, Refused
from gctd.domain.registry import REGISTRY

CATEGORY = "gctd.delivery"
CLAIM = timedelta(seconds=30)
"""Time for which the server that attempts a report has it alone."""
PATIENCE = timedelta(hours=24)
"""Time after the decision for which a report is attempted again."""
FIRST_RETRY, LONGEST_RETRY = timedelta(seconds=2), timedelta(minutes=15)


class DeliveryStatus(StrEnum):
    """The steps of a delivery: received, tasks queued, result decided, ended."""

    RECEIVED = "received"
    SCHEDULED = "scheduled"
    DECIDED = "decided"
    ENDED = "ended"


class Part(StrEnum):
    """The two reports to a forge."""

    STATUS = "status"
    COMMENT = "comment"


def delivery_id(forge: str, body: bytes) -> str:
    """Return the id of the aggregate: 32 hex digits that the forge and the body determine."""
    return sha256(forge.encode() + b"\n" + body).hexdigest()[:32]


# Events


@REGISTRY.event("DeliveryReceived")
@attrs.frozen(kw_only=True)
class DeliveryReceived:
    """A signed delivery names a commit of a registered repository.

    `delivery` is the forge's id of it. `forge` is the host of the forge, `path` the repository's path there. `base` is the branch
    or commit that the gate compares with. `number` is the number of the pull request, None for a push.
    """

    id: str
    delivery: str
    forge: str
    repo_id: str
    repo_url: str
    path: str
    ref: str
    commit_sha: str
    base: str
    number: int | None
    at: datetime


@REGISTRY.event("DeliveryScheduled")
@attrs.frozen(kw_only=True)
class DeliveryScheduled:
    """These tasks analyse the commit: new ones, queued in the same append, and earlier ones of the same commit."""

    tasks: tuple[str, ...]
    at: datetime


@REGISTRY.event("ReportDecided")
@attrs.frozen(kw_only=True)
class ReportDecided:
    """The result is known: `state` is success, failure or error, `description` a line for the commit status."""

    state: str
    description: str
    at: datetime


@REGISTRY.event("ReportAttempted")
@attrs.frozen(kw_only=True)
class ReportAttempted:
    """A server is about to send a part of the report; 1 is the first attempt at it."""

    part: Part
    attempt: int
    server: str
    at: datetime


@REGISTRY.event("ReportDelivered")
@attrs.frozen(kw_only=True)
class ReportDelivered:
    """The forge has this part of the report."""

    part: Part
    at: datetime


@REGISTRY.event("ReportAttemptFailed")
@attrs.frozen(kw_only=True)
class ReportAttemptFailed:
    """The forge did not take it. Another attempt follows, not before `retry_at`."""

    part: Part
    reason: str
    retry_at: datetime
    at: datetime


@REGISTRY.event("DeliveryEnded")
@attrs.frozen(kw_only=True)
class DeliveryEnded:
    """No event follows: the report is complete, or `reason` is the reason for its absence."""

    reported: bool
    reason: str
    at: datetime


DeliveryEvent = (
    DeliveryReceived | DeliveryScheduled | ReportDecided | ReportAttempted | ReportDelivered | ReportAttemptFailed | DeliveryEnded
)


# State


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Delivery:
    """A delivery. `delivered` are the parts that the forge has. `attempt` counts the attempts at the next part.

    `server` made the attempt under way at `attempted_at`; empty: none is under way.
    """

    id: str
    delivery: str
    forge: str
    repo_id: str
    repo_url: str
    path: str
    ref: str
    commit_sha: str
    base: str
    number: int | None
    received_at: datetime
    updated_at: datetime
    status: DeliveryStatus = DeliveryStatus.RECEIVED
    tasks: tuple[str, ...] = ()
    state: str = ""
    description: str = ""
    decided_at: datetime | None = None
    delivered: tuple[Part, ...] = ()
    attempt: int = 0
    server: str = ""
    attempted_at: datetime | None = None
    retry_at: datetime | None = None
    reported: bool = False
    reason: str = ""

    @property
    def next_part(self) -> Part | None:
        """The part that the forge does not have yet: the status, then the comment if there is a pull request."""
        wanted = [Part.STATUS, *([Part.COMMENT] if self.number is not None else [])]
        return next((part for part in wanted if part not in self.delivered), None)


def evolve(state: Delivery | None, event: DeliveryEvent) -> Delivery:
    """Return the state after an event."""
    if isinstance(event, DeliveryReceived):
        return Delivery(
            id=event.id,
            delivery=event.delivery,
            forge=event.forge,
            repo_id=event.repo_id,
            repo_url=event.repo_url,
            path=event.path,
            ref=event.ref,
            commit_sha=event.commit_sha,
            base=event.base,
            number=event.number,
            received_at=event.at,
            updated_at=event.at,
        )
    assert state is not None, "a delivery begins with DeliveryReceived"
    after = attrs.evolve(state, updated_at=event.at)
    match event:
        case DeliveryScheduled():
            return attrs.evolve(after, status=DeliveryStatus.SCHEDULED, tasks=event.tasks)
        case ReportDecided():
            return attrs.evolve(
                after, status=DeliveryStatus.DECIDED, state=event.state, description=event.description, decided_at=event.at
            )
        case ReportAttempted():
            return attrs.evolve(after, attempt=event.attempt, server=event.server, attempted_at=event.at, retry_at=None)
        case ReportDelivered():
            return attrs.evolve(after, delivered=(*state.delivered, event.part), attempt=0, server="", attempted_at=None)
        case ReportAttemptFailed():
            return attrs.evolve(after, server="", attempted_at=None, retry_at=event.retry_at, reason=event.reason)
        case DeliveryEnded():
            return attrs.evolve(
                after, status=DeliveryStatus.ENDED, server="", reported=event.reported, reason=event.reason, retry_at=None
            )


# Commands


@attrs.frozen(kw_only=True)
class ReceiveDelivery:
    """Take a delivery. A known delivery does not change."""

    received: DeliveryReceived


@attrs.frozen(kw_only=True)
class ScheduleDelivery:
    """The commit is analysed by these tasks."""

    tasks: tuple[str, ...]
    at: datetime


@attrs.frozen(kw_only=True)
class DecideReport:
    """The result is known."""

    state: str
    description: str
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
    part: Part
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


def decide(command: DeliveryCommand, state: Delivery | None) -> Sequence[DeliveryEvent]:
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
            return [DeliveryScheduled(tasks=command.tasks, at=command.at)]
        case DecideReport():
            due = state.status is DeliveryStatus.SCHEDULED
            return [ReportDecided(state=command.state, description=command.description, at=command.at)] if due else []
        case AttemptReport():
            return _attempt(command, state)
        case FinishAttempt():
            return _finish(command, state)
        case EndDelivery():
            ended = state.status is DeliveryStatus.ENDED
            return [] if ended else [DeliveryEnded(reported=False, reason=command.reason, at=command.at)]


def may_attempt(state: Delivery, at: datetime) -> bool:
    """Report whether an attempt may begin: the result is decided, no server works on it, and no pause is active."""
    if state.status is not DeliveryStatus.DECIDED or state.next_part is None:
        return False
    if state.attempted_at is not None and at < state.attempted_at + CLAIM:
        return False
    return state.retry_at is None or at >= state.retry_at


def _attempt(command: AttemptReport, state: Delivery) -> Sequence[DeliveryEvent]:
    if not may_attempt(state, command.at) or (part := state.next_part) is None:
        return []
    return [ReportAttempted(part=part, attempt=state.attempt + 1, server=command.server, at=command.at)]


def _finish(command: FinishAttempt, state: Delivery) -> Sequence[DeliveryEvent]:
    if state.status is not DeliveryStatus.DECIDED or state.next_part is not command.part or state.server != command.server:
        return []
    if not command.reason:
        delivered = ReportDelivered(part=command.part, at=command.at)
        if evolve(state, delivered).next_part is None:
            return [delivered, DeliveryEnded(reported=True, reason="", at=command.at)]
        return [delivered]
    assert state.decided_at is not None, "an attempt is made after the decision"
    wait = max(min(FIRST_RETRY * 2 ** min(state.attempt - 1, 20), LONGEST_RETRY), command.pause)
    failed = ReportAttemptFailed(part=command.part, reason=command.reason, retry_at=command.at + wait, at=command.at)
    if command.permanent or command.at + wait > state.decided_at + PATIENCE:
        return [failed, DeliveryEnded(reported=False, reason=f"{command.part}: {command.reason}", at=command.at)]
    return [failed]


DELIVERY: Decider[Delivery, DeliveryCommand, DeliveryEvent] = Decider(CATEGORY, decide, evolve)
