"""Routes of the event log: what happened, in order, and how things were at any moment of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from eventlog import AggregateId, EventFilter, Record, event_records
from gctd.domain.errors import NotFound
from gctd.http import formats
from gctd.http.bodies import body_of
from gctd.http.services import Services
from gctd.http.tasks.log_reader import reading
from gctd.http.tasks.routes import PAGE
from httpkit import Answer, Call, Route, Rule, decode_cursor, encode_cursor, member, message, query
from projections import timestamp_text

LAST = 10**18 - 1


_TYPE = Rule(pattern="^[A-Za-z]{1,64}$", form="the name of an event, like TaskFailed")


class EventCategory(StrEnum):
    """Kinds of aggregates."""

    DELIVERY = "delivery"
    REPO = "repo"
    TASK = "task"
    TOKEN = "token"  # noqa: S105 - the name of a kind
    VERDICT = "verdict"
    SCHEDULE = "schedule"
    WORKER = "worker"


class SearchOrder(StrEnum):
    """Order of events."""

    NEWEST = "newest"
    OLDEST = "oldest"


@message
class SearchLog:
    """Filter of a list of events. An event has to match all given values."""

    category: EventCategory | None = query(default=None, description="only of aggregates of this kind")
    aggregate: str | None = query(
        default=None, schema=formats.AGGREGATE, pattern=formats.AGGREGATE["pattern"], form=formats.AGGREGATE_FORM
    )
    type: tuple[str, ...] = query(
        default=(), max_length=20, items=_TYPE, description="only events of one of these types: `TaskFailed`"
    )
    text: str = query(default="", max_length=200, description="only with this text in their subject, type or JSON")
    from_: int = query(default=1, name="from", ge=1, le=LAST, description="the first sequence")
    to: int | None = query(default=None, ge=1, le=LAST, description="the last sequence; default: the end of the log")
    order: SearchOrder = query(default=SearchOrder.NEWEST)
    limit: int = query(default=100, ge=1, le=PAGE, description="a page ends behind the commit with which it is reached")
    cursor: str | None = query(default=None, schema=formats.SEQUENCE, description="cursor from the `Link` of the previous page")


@message
class StateAt:
    """Names an aggregate and a moment."""

    aggregate: str = query(
        schema=formats.AGGREGATE,
        pattern=formats.AGGREGATE["pattern"],
        form=formats.AGGREGATE_FORM,
        example="gctd.task.task-1763635200000000001",
    )
    at: int | None = query(default=None, ge=1, le=LAST, description="a sequence of the log; default: its last")


@message
class RecordBody:
    """A stored event."""

    position: str = member(description="sequence, and a dot and the place in its commit if that has several: `17`, `17.2`")
    sequence: int = member()
    aggregate: str = member(description="`gctd.<kind>.<id>`")
    type: str | None = member(description="null if the commit cannot be read")
    version: int | None = member(description="of the type")
    at: str | None = member(description="RFC 3339, UTC")
    data: Any = member()
    commit: str | None = member()
    correlation: str | None = member(description="the request that it began with")
    causation: str | None = member(description="the commit that caused it")
    actor: str | None = member(
        description="the caller: `token:<id>:<name>`, `worker:<id>`, `operator:<user>`, `local`; null: the service itself"
    )
    problem: str | None = member(description="why it cannot be read")

    @classmethod
    def of(cls, record: Record) -> RecordBody:
        """An event."""
        return body_of(
            cls,
            record,
            position=str(record.position),
            sequence=record.position.sequence,
            at=timestamp_text(record.at) if record.at else None,
            correlation=record.context.correlation,
            causation=record.context.causation,
            actor=record.context.actor,
        )


@message
class LogPage:
    """Events of a part of the log. Another page exists if `Link` names one, even if this page is empty."""

    first: int = member(name="from", description="first sequence that was looked at")
    last: int = member(name="to", description="last sequence that was looked at")
    end: int = member(description="last sequence of the log")
    events: Sequence[RecordBody] = member()


@message
class StateDocument:
    """An aggregate after a commit, and the events of that commit."""

    aggregate: str = member()
    sequence: int = member(description="of the commit")
    at: str = member(description="RFC 3339, UTC")
    version: int = member(description="of the state's form")
    state: Any = member()
    events: Sequence[RecordBody] = member()


async def search_log(request: SearchLog, call: Call[Services]) -> Answer[LogPage]:
    """Events, newest or oldest first. One page looks at 20,000 commits at most."""
    newest = request.order is SearchOrder.NEWEST
    first, last = request.from_, request.to
    if request.cursor is not None:
        (at,) = decode_cursor(request.cursor, tuple[int])
        first, last = (first, at) if newest else (max(first, at), last)
    wanted = EventFilter(
        first=first,
        last=last,
        category=f"gctd.{request.category.value}" if request.category else None,
        aggregate=AggregateId.parse(request.aggregate) if request.aggregate else None,
        types=frozenset(request.type),
        text=request.text,
        newest=newest,
        limit=request.limit,
    )
    page = await call.services.reader.page(wanted)
    events = [RecordBody.of(record) for record in page.records]
    body = LogPage(first=page.first, last=page.last, end=page.end, events=events)
    return Answer(body, sequence=page.end, cursor=None if page.next is None else encode_cursor((page.next,)))


async def state_at(request: StateAt, call: Call[Services]) -> Answer[StateDocument]:
    """Return an aggregate at a sequence of the log: its last commit up to there, with its state and its events."""
    reader = call.services.reader
    if request.at is not None:
        await reader.require(request.at)
    aggregate, newest = AggregateId.parse(request.aggregate), request.at is None
    commit = await reader.log.last(aggregate, up_to=request.at, consistent=newest)
    if commit is None:
        raise NotFound(f"there is no {request.aggregate}" + (f" at sequence {request.at}" if request.at else ""))
    with reading(commit):
        stored = commit.body.state
    document = StateDocument(
        aggregate=commit.subject,
        sequence=commit.sequence,
        at=timestamp_text(commit.at),
        version=stored.version,
        state=msgspec.Raw(stored.data),
        events=[RecordBody.of(record) for record in event_records(commit)],
    )
    return Answer(document, sequence=commit.sequence)


ROUTES = (
    Route("GET", "/api/log", search_log, summary="Search the event log", tags=("events",), immediate=True),
    Route("GET", "/api/log/state", state_at, summary="State at a sequence", tags=("events",), errors=(404, 409), immediate=True),
)
