"""The route that says how a service's read model stands: the figures of `projections status` and of `/metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from httpkit.messages.fields import member, message
from httpkit.routes import Call, Nothing, Route
from projections.model import timestamp_text
from projections.projector.report import CopyReport, ProjectionStanding, ReadModelReport
from projections.projector.status import ProjectorStatus
from projections.store import Parked
from servicekit.readside import ReadSide

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
    problem: str | None = member(description="why it cannot go on; null where it can")

    @classmethod
    def of(cls, one: ProjectionStanding) -> ProjectionBody:
        """A projection as it stands."""
        return cls(
            name=one.projection,
            version=one.version,
            position=one.position,
            lag_events=one.lag_events,
            lag_seconds=one.lag_seconds,
            applied=one.applied,
            parked=one.parked,
            waiting=one.waiting,
            problem=one.problem,
        )


@message
class ParkedBody:
    """A parked aggregate; `projections parked --traceback` has more."""

    projection: str = member()
    aggregate: str = member()
    sequence: int = member(description="of the commit that cannot be applied")
    events: str = member(description="the types of its events; empty where it cannot be read")
    error: str = member()
    waiting: int = member(description="commits that wait, itself among them")
    at: str = member(description="RFC 3339, UTC")

    @classmethod
    def of(cls, one: Parked) -> ParkedBody:
        """What is parked."""
        return cls(
            projection=one.projection,
            aggregate=one.subject,
            sequence=one.sequence,
            events=one.types,
            error=one.error,
            waiting=one.waiting,
            at=timestamp_text(one.at),
        )


@message
class CopyBody:
    """A copy of the tables beside the live ones."""

    part: str = member(description="new: it is being made, or has been; old: it was live before")
    position: int = member(description="sequence of the log that it has reached")
    ready: bool = member(description="it can be switched to")
    problem: str | None = member(description="why it cannot be; null where it can")

    @classmethod
    def of(cls, one: CopyReport) -> CopyBody:
        """A copy as it stands."""
        return cls(part=one.part, position=one.position, ready=one.ready, problem=one.problem)


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
    error: str | None = member(description="why it waits or has stopped; null where it does not")
    note: str | None = member(description="what is wrong though it goes on: what is parked, a database that was damaged")
    projections: Sequence[ProjectionBody] = member()
    parked: Sequence[ParkedBody] = member(description=f"the first {MOST_PARKED}")
    copies: Sequence[CopyBody] = member()

    @classmethod
    def of(cls, standing: ReadModelReport, status: ProjectorStatus, note: str | None) -> ReadModelBody:
        """A read model as it stands."""
        return cls(
            read_model=standing.read_model,
            stream=standing.stream,
            incarnation=standing.incarnation,
            head=standing.head,
            schema_version=standing.schema.version,
            state=status.state.value,
            since=timestamp_text(status.since),
            rate=status.rate,
            error=status.error,
            note=note,
            projections=[ProjectionBody.of(one) for one in standing.projections],
            parked=[ParkedBody.of(one) for one in standing.parked[:MOST_PARKED]],
            copies=[CopyBody.of(one) for one in standing.copies],
        )


EXAMPLE = {
    "read_model": "tracker",
    "stream": "GCTD",
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
    "copies": [{"part": "old", "position": 4012, "ready": True, "problem": None}],
}
"""An answer, for the API's description."""


async def show_projections(request: Nothing, call: Call[HasReadSide]) -> ReadModelBody:  # noqa: ARG001
    """How the read model stands: each projection against the log, what is parked, copies that are being made or kept."""
    side = call.services.side
    return ReadModelBody.of(await side.standing(), side.projector.status(), side.note())


def projections_route(path: str) -> Route[Any]:
    """The route, at a path."""
    return Route("GET", path, show_projections, summary="How the read model stands", tags=("operation",))
