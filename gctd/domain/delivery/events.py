"""The events of a delivery."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import attrs

from gctd.domain.registry import REGISTRY


class Part(StrEnum):
    """The two reports to a forge."""

    STATUS = "status"
    COMMENT = "comment"


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
    """The result is known: `state` is success, failure or error, `description` a line for the commit status.

    `not_judged` names the projects at the commit without a judgement.
    """

    state: str
    description: str
    not_judged: tuple[str, ...]
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
    """The forge has this part of the report, or the same part of a later delivery in its place."""

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
