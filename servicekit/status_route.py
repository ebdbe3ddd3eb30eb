"""The route for the state of a service's read model: the figures of `projections status` and of `/metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from eventlog.admin.scrub import LogScrubber
from httpkit.messages.fields import member, message
from httpkit.routes import Call, Nothing, Route
from projections.model import timestamp_text
from projections.projector.status import ProjectorStatus
from projections.rebuild.rebuild import CopyReport
from projections.rebuild.report import ProjectionStatus, ReadModelReport
from projections.store import Parked
from servicekit.read_side import ReadSide

MOST_PARKED = 100
"""Parked aggregates that are listed; `projections parked` lists all."""


class HasReadSide(Protocol):
    """The services of an application that has a read model."""

    @property
    def side(self) -> ReadSide:
        """Its read side."""


@message
class ProjectionBody:
    """A projection."""

    name: str = member()
    version: int = member()
    position: int = member(description="sequence of the log that it has reached")
    lag_events: int = member()
    lag_seconds: float = member(description="age of the oldest event that is not applied")
    applied: int = member(description="commits applied since its tables were empty")
    parked: int = member(description="aggregates that wait behind a commit that cannot be applied")
    waiting: int = member(description="commits that wait so")
    problem: str | None = member(description="why it cannot continue; null if it can")

    @classmethod
    def of(cls, status: ProjectionStatus) -> ProjectionBody:
        """Return the body of a projection."""
        return cls(name=status.projection, **attrs.asdict(status, filter=attrs.filters.exclude("projection", "head")))


@message
class ParkedBody:
    """A parked aggregate; `projections parked --traceback` has more."""

    projection: str = member()
    aggregate: str = member()
    sequence: int = member(description="of the commit that cannot be applied")
    events: str = member(description="the types of its events; empty if it cannot be read")
    error: str = member()
    waiting: int = member(description="commits that wait, itself among them")
    at: str = member(description="RFC 3339, UTC")

    @classmethod
    def of(cls, parked: Parked) -> ParkedBody:
        """Return the body of a parked aggregate."""
        return cls(
            projection=parked.projection,
            aggregate=parked.subject,
            sequence=parked.sequence,
            events=parked.types,
            error=parked.error,
            waiting=parked.waiting,
            at=timestamp_text(parked.at),
        )


@message
class CopyBody:
    """A copy of the tables next to the live ones."""

    part: str = member(description="new: it is being made, or has been; old: it was live before")
    position: int = member(description="sequence of the log that it has reached")
    ready: bool = member(description="it can be switched to")
    problem: str | None = member(description="why it cannot be switched to; null if it can")

    @classmethod
    def of(cls, report: CopyReport) -> CopyBody:
        """Return the body of a copy."""
        return cls(**attrs.asdict(report))


@message
class ScrubBody:
    """The passes over the log by which this process looks for damage."""

    position: int | None = member(description="sequence that the pass has reached which runs, or ran last; null before the first")
    until: int | None = member(description="last sequence of that pass")
    completed: str | None = member(description="end of the last complete pass, RFC 3339, UTC; null: none yet")
    damaged: int | None = member(description="records that are damaged; null: no pass has been completed")
    found: Sequence[str] = member(description="the first of them, in words")

    @classmethod
    def of(cls, scrubber: LogScrubber) -> ScrubBody:
        """As they are now."""
        current, complete, findings = scrubber.current, scrubber.complete, scrubber.found
        return cls(
            position=None if current is None else current.position,
            until=None if current is None else current.until,
            completed=None if complete is None or complete.ended is None else timestamp_text(complete.ended),
            damaged=None if findings is None else findings.count,
            found=[] if findings is None else [str(damage) for damage in findings.found],
        )


@message
class ReadModelBody:
    """A read model and its projector."""

    read_model: str = member()
    stream: str = member()
    incarnation: str = member(description="of the stream")
    head: int = member(description="last sequence of the log")
    schema_version: int = member()
    state: str = member(description="of the projector: starting, catching up, live, waiting, stopped")
    since: str = member(description="when it entered that state; RFC 3339, UTC")
    rate: float = member(description="commits applied per second, over the last five seconds")
    error: str | None = member(description="why it waits or has stopped; null if it works")
    note: str | None = member(description="problems that do not stop it: parked aggregates, a database that was damaged")
    projections: Sequence[ProjectionBody] = member()
    parked: Sequence[ParkedBody] = member(description=f"the first {MOST_PARKED}")
    copies: Sequence[CopyBody] = member()
    scrub: ScrubBody = member()

    @classmethod
    def of(cls, report: ReadModelReport, status: ProjectorStatus, note: str | None, scrubber: LogScrubber) -> ReadModelBody:
        """Return the body of a read model."""
        return cls(
            read_model=report.read_model,
            stream=report.stream,
            incarnation=report.incarnation,
            head=report.head,
            schema_version=report.schema.version,
            state=status.state.value,
            since=timestamp_text(status.since),
            rate=status.rate,
            error=status.error,
            note=note,
            projections=[ProjectionBody.of(one) for one in report.projections],
            parked=[ParkedBody.of(one) for one in report.parked[:MOST_PARKED]],
            copies=[CopyBody.of(one) for one in report.copies],
            scrub=ScrubBody.of(scrubber),
        )


PROJECTIONS_EXAMPLE = {
    "read_model": "tracker",
    "stream": "TRACKER",
    "incarnation": "5f96c0f1da0d10873a959c573bb8deeb",
    "head": 4711,
    "schema_version": 12,
    "state": "live",
    "since": "2026-11-20T14:55:54.976933Z",
    "rate": 12.4,
    "error": None,
    "note": None,
    "projections": [
        {
            "name": "tasks",
            "version": 3,
            "position": 4711,
            "lag_events": 0,
            "lag_seconds": 0.0,
            "applied": 4400,
            "parked": 0,
            "waiting": 0,
            "problem": None,
        }
    ],
    "parked": [],
    "scrub": {"position": 4711, "until": 4711, "completed": "2026-11-20T15:01:12.300000Z", "damaged": 0, "found": []},
    "copies": [{"part": "old", "position": 4012, "ready": True, "problem": None}],
}
"""An answer, for the API's description."""


async def show_projections(request: Nothing, call: Call[HasReadSide]) -> ReadModelBody:  # noqa: ARG001
    """Return the state of the read model: each projection against the log, parked aggregates, and copies."""
    side = call.services.side
    return ReadModelBody.of(await side.standing(), side.projector.status(), side.parts.note(), side.scrubber)


def projections_route(path: str) -> Route[Any]:
    """The route, at a path."""
    return Route("GET", path, show_projections, summary="State of the read model", tags=("operation",), immediate=True)
