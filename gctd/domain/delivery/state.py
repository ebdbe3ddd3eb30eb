"""The state of a delivery."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import attrs

from gctd.domain.delivery import events
from gctd.domain.registry import REGISTRY

CATEGORY = "gctd.delivery"


class DeliveryStatus(StrEnum):
    """The steps of a delivery: received, tasks queued, result decided, ended."""

    RECEIVED = "received"
    SCHEDULED = "scheduled"
    DECIDED = "decided"
    ENDED = "ended"


@REGISTRY.state(CATEGORY)
@attrs.frozen(kw_only=True)
class Delivery:
    """A delivery. `delivered` are the parts that the forge has. `attempt` counts the attempts at the next part.

    `server` made the attempt under way at `attempted_at`; empty: none is under way. `not_judged` is set with the result.
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
    delivered: tuple[events.Part, ...] = ()
    attempt: int = 0
    server: str = ""
    attempted_at: datetime | None = None
    retry_at: datetime | None = None
    reported: bool = False
    reason: str = ""
    not_judged: tuple[str, ...] = ()

    @property
    def next_part(self) -> events.Part | None:
        """The part that the forge does not have yet: the status, then the comment if there is a pull request."""
        wanted = [events.Part.STATUS, *([events.Part.COMMENT] if self.number is not None else [])]
        return next((part for part in wanted if part not in self.delivered), None)


def evolve(state: Delivery | None, event: events.DeliveryEvent) -> Delivery:
    """Return the state after an event."""
    if isinstance(event, events.DeliveryReceived):
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
        case events.DeliveryScheduled():
            return attrs.evolve(after, status=DeliveryStatus.SCHEDULED, tasks=event.tasks)
        case events.ReportDecided():
            return attrs.evolve(
                after,
                status=DeliveryStatus.DECIDED,
                state=event.state,
                description=event.description,
                decided_at=event.at,
                not_judged=event.not_judged,
            )
        case events.ReportAttempted():
            return attrs.evolve(after, attempt=event.attempt, server=event.server, attempted_at=event.at, retry_at=None)
        case events.ReportDelivered():
            return attrs.evolve(after, delivered=(*state.delivered, event.part), attempt=0, server="", attempted_at=None)
        case events.ReportAttemptFailed():
            return attrs.evolve(after, server="", attempted_at=None, retry_at=event.retry_at, reason=event.reason)
        case events.DeliveryEnded():
            return attrs.evolve(
                after, status=DeliveryStatus.ENDED, server="", reported=event.reported, reason=event.reason, retry_at=None
            )
