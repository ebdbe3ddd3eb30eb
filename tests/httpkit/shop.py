"""A small service on the edge, for its tests: things with names and amounts, and a stream of their changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from http import HTTPStatus
from typing import Any, Literal

import aiohttp
import attrs
from aiohttp import web

from eventlog.commit import Position
from httpkit.application import build_application
from httpkit.edge import Edge
from httpkit.messages.binding import decode_cursor, encode_cursor
from httpkit.messages.fields import UNSET, Unset, header, member, message, path, payload, query
from httpkit.monitoring import Health
from httpkit.routes import Answer, Call, Nothing, Route
from httpkit.server.serving import ListenAddress, ServerLimits, serving
from httpkit.sse.hub import Hub
from httpkit.sse.stream import Frame, StreamSettings


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class DomainError(Exception):
    """An error of another package: known to the edge by its attributes alone."""

    status = HTTPStatus.CONFLICT


class BadName(DomainError):
    status = HTTPStatus.BAD_REQUEST

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class NotFromHere(Exception):
    """The error of a client of another server. Its status is a number: the answer of that server, 0 without an answer."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} from http://inside:9/?password=hunter2")
        self.status = status


class Away(DomainError):
    """The broker cannot be reached."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


@message
class Part:
    """A part of a thing."""

    label: str = member(max_length=5)
    count: int = member(default=1, ge=1)


@message
class NewThing:
    """A thing to be made."""

    name: str = member(min_length=1, max_length=20, description="What it is called.", example="nail")
    amount: Decimal = member(gt=0, le=10**6, places=3)
    colour: Colour = member(default=Colour.RED)
    kind: Literal["a", "b"] = member(default="a")
    parts: tuple[Part, ...] = member(default=(), max_length=3)
    notes: str | None = member(default=None, multiline=True)
    due: datetime | None = None


@message
class Thing:
    """A thing."""

    id: str
    name: str
    status_reason: str | None = member(default=None, name="StatusReason")
    made_at: datetime
    analysis_id: str | Unset = member(default=UNSET, description="There once it is done.")


@message
class ThingId:
    id: str = path(pattern=r"^t[0-9]+$", form="the id of a thing, like t1")


@message
class ListThings:
    colour: Colour | None = query(default=None)
    limit: int = query(default=2, ge=1, le=100)
    tags: tuple[str, ...] = query(default=())
    since: datetime | None = query(default=None)
    done: bool = query(default=False)
    cursor: str | None = query(default=None)


@message
class Patch:
    id: str = path()
    name: str | Unset = member(default=UNSET, max_length=20)
    notes: str | Unset | None = member(default=UNSET)
    tenant: str | None = header("X-Tenant", default=None, max_length=10)


@message
class Changes:
    """The result of binding a patch."""

    name: str | None
    notes: str | None
    given: list[str]


@message
class Text:
    text: str = payload("*/*", multiline=True, max_length=100)


@message
class Upload:
    rows: bytes = payload("text/csv")
    seconds: float = query(default=0, ge=0)


@message
class Batch:
    things: list[NewThing] = payload()


@message
class Sum:
    amounts: list[Decimal] = member()


@message
class Do:
    what: str = path(pattern="^[a-z]+$", otherwise=HTTPStatus.UNPROCESSABLE_ENTITY)
    seconds: float = query(default=0, ge=0)


@attrs.define
class Shop:
    """The services of the handlers."""

    hub: Hub
    log: list[Frame]
    sequence: int = 7
    made: int = 0
    upstream: int = 404
    last_call: Call[Any] | None = None
    release: asyncio.Event = attrs.field(factory=asyncio.Event)
    entered: asyncio.Event = attrs.field(factory=asyncio.Event)

    def publish(self, *frames: Frame) -> None:
        self.log.extend(frames)
        if frames:
            self.sequence = max(self.sequence, frames[-1].position.sequence)
        self.hub.publish(frames, self.sequence)


def thing(number: int) -> Thing:
    return Thing(id=f"t{number}", name=f"thing {number}", made_at=datetime(2026, 1, 31, 12, tzinfo=UTC))


async def make_thing(request: NewThing, call: Call[Shop]) -> Answer[Thing]:
    """Make a thing."""
    call.services.last_call = call
    call.services.made += 1
    plain = thing(call.services.made)
    made = Thing(id=plain.id, name=request.name, made_at=plain.made_at)
    return Answer(made, headers={"Location": f"/things/{made.id}"}, sequence=99)


async def list_things(request: ListThings, _: Call[Shop]) -> Answer[Sequence[Thing]]:
    (after,) = decode_cursor(request.cursor, tuple[int]) if request.cursor else (0,)
    numbers = range(after + 1, min(after + request.limit, 5) + 1)
    cursor = encode_cursor((numbers[-1],)) if numbers and numbers[-1] < 5 else None
    return Answer([thing(number) for number in numbers], cursor=cursor)


async def show_thing(request: ThingId, _: Call[Shop]) -> Answer[Thing]:
    return Answer(thing(int(request.id[1:])), etag="v1")


async def patch_thing(request: Patch, call: Call[Shop]) -> Changes:
    call.require_match("v1")
    given = [name for name in ("name", "notes") if getattr(request, name) is not UNSET]
    return Changes(name=request.name or None, notes=request.notes or None, given=given)


async def remove_thing(_: ThingId, __: Call[Shop]) -> None:
    """Remove a thing."""


async def echo(request: Text, _: Call[Shop]) -> str:
    return request.text


async def upload(request: Upload, _: Call[Shop]) -> int:
    await asyncio.sleep(request.seconds)
    return len(request.rows)


async def batch(request: Batch, _: Call[Shop]) -> int:
    return len(request.things)


async def add_up(request: Sum, _: Call[Shop]) -> Decimal:
    return sum(request.amounts, Decimal())


async def do(request: Do, call: Call[Shop]) -> Answer[str]:
    """Do the action that a test names."""
    errors: dict[str, Exception] = {
        "boom": RuntimeError("secret: the password is hunter2"),
        "conflict": DomainError("it moved on"),
        "field": BadName("what", "is not nice"),
        "away": Away(),
        "upstream": NotFromHere(call.services.upstream),
    }
    if (error := errors.get(request.what)) is not None:
        raise error
    match request.what:
        case "hold":
            call.services.entered.set()
            await call.services.release.wait()
        case "sleep":
            await asyncio.sleep(request.seconds)
        case "advance":
            call.services.sequence += 1
        case "undeclared":
            return Answer("", status=207)
        case "large":
            return Answer("x" * 20_000_000)
    return Answer("done")


async def events(_: Nothing, call: Call[Shop]) -> web.StreamResponse:
    """Stream the events of things."""
    return await call.services.hub.stream(call.http)


async def only_news(_: Nothing, call: Call[Shop]) -> web.StreamResponse:
    """Stream new events only."""
    return await call.services.hub.stream(call.http, only=frozenset({"news"}))


TABLE: tuple[Route[Shop], ...] = (
    Route("GET", "/things/{id}", show_thing, summary="A thing", also=(304,)),
    Route("DELETE", "/things/{id}", remove_thing, summary="Remove a thing"),
    Route("PATCH", "/things/{id}", patch_thing, summary="Change a thing", errors=(412,)),
    Route("GET", "/things", list_things, summary="Things"),
    Route("POST", "/things", make_thing, summary="Make a thing", status=201, idempotent=True),
    Route("POST", "/things/batch", batch, summary="Make things"),
    Route("POST", "/things/sum", add_up, summary="Add up"),
    Route("POST", "/echo", echo, summary="Say it again"),
    Route("POST", "/upload", upload, summary="Take rows", max_body=5_000_000),
    Route("POST", "/do/{what}", do, summary="Do it", errors=(409,), deprecated=True),
    Route("GET", "/events", events, summary="Events", events={"thing": Thing}),
    Route("GET", "/news", only_news, summary="News", events={"news": Thing}),
)


def frame(sequence: int, index: int = 0, event: str = "thing", *, data: bytes | None = None) -> Frame:
    return Frame(Position(sequence, index), event, data if data is not None else b'{"at":"%d.%d"}' % (sequence, index))


@attrs.frozen
class Running:
    """A shop that is being served, and a client for it."""

    shop: Shop
    address: ListenAddress
    http: aiohttp.ClientSession
    edge: Edge

    @property
    def port(self) -> int:
        return self.address.port


class TablesAt:
    """Tables at a position of the log, of which no command is unseen."""

    def __init__(self, position: Callable[[], int]) -> None:
        self._position = position

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[int]:
        yield self._position()

    async def wait_for(self, sequence: int, _: float) -> None:
        if sequence > self._position():
            raise Away(f"the read model has not reached {sequence}")

    async def acknowledge(self, sequence: int, *, immediate: bool) -> None:
        """It is there."""

    async def include_acknowledged(self) -> None:
        """They are there."""


@asynccontextmanager
async def open_shop(
    *,
    limits: ServerLimits | None = None,
    streams: StreamSettings | None = None,
    health: Health | None = None,
    table: Sequence[Route[Shop]] = TABLE,
    **edge: Any,
) -> AsyncIterator[Running]:
    """Serve a shop on a free port."""
    log: list[Frame] = []

    async def replay(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
        wanted = [frame for frame in log if frame.position > after and frame.position.sequence <= until]
        for start in range(0, len(wanted), 7):
            await asyncio.sleep(0)
            yield wanted[start : start + 7]

    shop = Shop(Hub(replay, streams), log)
    shop.hub.start(shop.sequence)
    made = Edge(title="Shop", version="1", **({"tables": TablesAt(lambda: shop.sequence)} | edge))
    app = build_application(table, shop, made, health=health or Health({}))
    app.on_shutdown.append(shop.hub.close)
    async with (
        serving(app, made, host="127.0.0.1", port=0, limits=limits) as address,
        aiohttp.ClientSession(address.url, timeout=aiohttp.ClientTimeout(total=10)) as http,
    ):
        yield Running(shop, address, http, made)
