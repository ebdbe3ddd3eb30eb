"""A client of a service: its session, its resources, and requests that are repeated while it is away."""

from __future__ import annotations

import asyncio
import codecs
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar
from uuid import uuid4

import attrs
import msgspec

from terminalkit.client.transport import ClientError, NotFound, OtherService, ServerAnswer, TimedOut, Transport, Unavailable
from terminalkit.config.flags import SettingFlags, SettingSources
from terminalkit.coroutine import command
from terminalkit.display.output import Output
from terminalkit.failure import ExitCode
from terminalkit.invocation import Invocation

LARGEST_FRAME = 16 * 1024 * 1024
"""Characters that one frame may have; more is not an event stream of this service."""

RESET = "reset"
"""The event of a server that cannot resume: the client has to reload the states."""

_HEARTBEAT = "heartbeat"

FIRST_WAIT = 0.5
LONGEST_WAIT = 10.0

_MOST_EVENTS = 10**6
_POSITION = re.compile(r"(?:(?P<epoch>[^-]*)-)?(?P<sequence>[0-9]{1,19})(?:\.(?P<index>[0-9]{1,6}))?")


@attrs.frozen(order=True)
class Position:
    """A place in the log: the sequence of a commit, and the index of an event in it."""

    sequence: int
    index: int = 0

    @classmethod
    def after(cls, sequence: int) -> Self:
        """The place behind all events of a commit."""
        return cls(sequence, _MOST_EVENTS)


@attrs.frozen
class ReceivedFrame:
    """An event: its name, its data as text, and the id that it bore itself (None if it bore none)."""

    event: str
    data: str
    id: str | None = None

    @property
    def position(self) -> Position | None:
        """Its place in the log, by its id; None if that names no place."""
        _, position = _place(self.id)
        return position


def _place(id_: str | None) -> tuple[str | None, Position | None]:
    """The log and the place in it that an id names; None if it does not name them."""
    match = None if id_ is None else _POSITION.fullmatch(id_)
    return (None, None) if match is None else (match["epoch"], Position(int(match["sequence"]), int(match["index"] or 0)))


@attrs.frozen
class Opened:
    """The connection is open, and the server has begun to send.

    `resumed`: it continues at the end of the last one. If not, frames may be missing.
    """

    resumed: bool


@attrs.frozen
class StreamLost:
    """A connection ended or did not come about; the next try follows in `wait` seconds."""

    error: ClientError
    wait: float


Signal = ReceivedFrame | Opened | StreamLost
Connect = Callable[[str | None], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Opens a stream behind an event id (None: from now on) and gives its bytes; raises ClientError."""


class FrameParser:
    """Bytes of one connection in, complete frames out.

    `last_id` is what to resume from, `retry` the seconds that the server asks to wait before that (None: it does not say).
    """

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[ReceivedFrame]:
        """The frames that these bytes complete. Raises ClientError if a frame is larger than LARGEST_FRAME."""
        return [frame for line in self._lines(chunk) if (frame := self._take(line)) is not None]

    def _lines(self, chunk: bytes) -> Iterator[str]:
        text = self._decoder.decode(chunk)
        if not text:
            return
        if self._after_cr and text[0] == "\n":
            text = text[1:]
        self._after_cr = text.endswith("\r")
        *lines, self._rest = (self._rest + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        yield from lines
        self._check_size()

    def _take(self, line: str) -> ReceivedFrame | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
                self._size += len(value)
                self._check_size()
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry = int(value) / 1000
            case _:  # a comment, or a field of another version
                pass
        return None

    def _check_size(self) -> None:
        if self._size + len(self._rest) > LARGEST_FRAME:
            raise ClientError("the event stream has a frame without an end")

    def _dispatch(self) -> ReceivedFrame | None:
        if self._id is not None:
            self.last_id = self._id or None  # an empty id takes the last one back
        frame = ReceivedFrame(self._event or "message", "\n".join(self._data), self._id) if self._data else None
        self._event, self._data, self._size, self._id = "", [], 0, None
        return frame


class _Delivered:
    """Which frames were given to the consumer: positions only rise, within one incarnation of the stream."""

    def __init__(self) -> None:
        self._epoch: str | None = None
        self._last = Position(-1)

    def first_time(self, id_: str | None) -> bool:
        """Whether a frame of this id is new; one without a position always is."""
        epoch, position = _place(id_)
        if position is None:
            return True
        if epoch == self._epoch and position <= self._last:
            return False
        self._epoch, self._last = epoch, position
        return True


async def follow(connect: Connect, *, after: str | None = None, first_wait: float = FIRST_WAIT) -> AsyncGenerator[Signal, None]:
    """Yield the frames of the stream after `after` (None: from now on), and the changes of the connection, without an end.

    Frames with an id are given once and in order. The client reconnects after `first_wait` seconds (or the wait that the server
    asks for) up to LONGEST_WAIT, with jitter. A caller that wants to give up does so at a Lost. Raises ClientError if the server
    refuses for a reason that waiting does not remove.
    """
    last_id, delivered, failures, retry = after, _Delivered(), 0, first_wait
    while True:
        parser = FrameParser(last_id)
        error: ClientError = Unavailable("the server ended the event stream")
        try:
            async with connect(last_id) as chunks:
                # The greeting has the position of the stream: with it, a cut while the consumer reads states loses no frame.
                greeting = parser.feed(await anext(chunks, b""))
                yield Opened(resumed=last_id is not None)
                async for frames in _frames(greeting, parser, chunks):
                    for frame in frames:
                        if frame.event == RESET:
                            delivered = _Delivered()
                        if frame.event != _HEARTBEAT and delivered.first_time(frame.id):
                            failures = 0
                            yield frame
        except (Unavailable, TimedOut) as lost:
            error = lost
        last_id, retry = parser.last_id, retry if parser.retry is None else parser.retry
        wait = _wait(error, retry, failures)
        failures += 1
        yield StreamLost(error, wait)
        await asyncio.sleep(wait)


async def _frames(
    greeting: Sequence[ReceivedFrame], parser: FrameParser, chunks: AsyncIterator[bytes]
) -> AsyncGenerator[Sequence[ReceivedFrame], None]:
    yield greeting
    async for chunk in chunks:
        yield parser.feed(chunk)


def _wait(error: ClientError, first: float, failures: int) -> float:
    asked = error.retry_after if isinstance(error, Unavailable) else None
    longest = min(first * 2.0 ** min(failures, 16), LONGEST_WAIT) if asked is None else min(asked, LONGEST_WAIT)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - keeps clients from coming back all at once, no secret


Found = TypeVar("Found", bound="Resource | Sequence[Resource]")
Work = Callable[..., Coroutine[Any, Any, int]]


@attrs.frozen
class ClientSession:
    """A client of the server, and the run of the program that it belongs to. A program narrows the type of `client`."""

    client: Any
    invocation: Invocation

    @property
    def output(self) -> Output:
        """The output of the command."""
        return self.invocation.output

    async def on_not_found(self, arguments: Mapping[str, Any]) -> None:
        """Improve the advice, after the server did not find the thing that a command with these arguments is about."""

    def show(self, found: Found, table: Callable[[Output, Found], object]) -> int:
        """Write an answer of the server: its documents with `--json`, else by `table`. Return the exit code."""
        if self.output.json:
            self.output.document([one.document for one in found] if isinstance(found, Sequence) else found.document)
        else:
            table(self.output, found)
        return ExitCode.OK

    def show_one(self, found: R, table: Callable[[Output, Sequence[R]], object]) -> int:
        """As `show`, by a table with one row."""
        return self.show(found, lambda output, one: table(output, [one]))

    def show_first(self, limit: int, found: Sequence[R], table: Callable[[Output, Sequence[R]], object]) -> int:
        """As `show`, at most `limit` elements (0: all), with a note if more were found."""
        shown = found[:limit] if limit else found
        code = self.show(shown, table)
        if len(found) > len(shown):
            self.output.note(f"there are more than these {limit}: see --limit")
        return code


def one_more(limit: int) -> int | None:
    """Return the limit of a request that finds out whether there are more elements than `limit` (0: all)."""
    return limit + 1 if limit else None


def command_with_client(
    flags: SettingFlags[Any],
    client: Callable[[], type[ServiceClient]],
    session: type[ClientSession],
    *,
    not_found: str | None = None,
    time_limit: str = "--timeout",
    **limits: float,
) -> Callable[[Work], Callable[..., int]]:
    """Make the function of a command out of `async def f(session, ...) -> exit code`, with the options common to all.

    `client` may import modules that are slow. `not_found` and `time_limit` are as in `terminalkit.coroutine.command`,
    `limits` as of `ServiceClient`.
    """

    def decorate(work: Work) -> Callable[..., int]:
        @flags.options("url")
        @command(not_found=not_found, time_limit=time_limit)
        @wraps(work)
        async def with_session(invocation: Invocation, *, sources: SettingSources[Any], **arguments: Any) -> int:
            settings, trace = sources.load(running=("url",)).values, invocation.output.detail
            async with client()(settings.url, token=settings.auth_token, trace=trace, **limits) as asked:
                own = session(asked, invocation)
                try:
                    return await work(own, **arguments)
                except ClientError as error:
                    await asked.check_service(error)
                    if isinstance(error, NotFound):
                        await own.on_not_found(arguments)
                    raise

        return with_session

    return decorate


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of the API; `document` is the object itself, as decoded.

    `known_at` is the position of the log for which it is true. None: the server does not name it.
    """

    document: Mapping[str, Any] = {}
    known_at: int | None = None


R = TypeVar("R", bound=Resource)


def parse(type_: type[R], document: object, *, known_at: int | None = None) -> R:
    """Return the value of a decoded JSON object. Raises ClientError if it does not fit."""
    if not isinstance(document, dict):
        raise ClientError(f"the server answered with {type(document).__name__} instead of an object")
    try:
        return msgspec.convert({**document, "document": document, "known_at": known_at}, type_)
    except msgspec.ValidationError as error:
        raise ClientError(f"the server's answer is not one that this version understands: {error}") from error


def parse_list(type_: type[R], documents: object, *, known_at: int | None = None) -> list[R]:
    """Return the values of a decoded JSON array of objects. Raises ClientError if one does not fit."""
    if not isinstance(documents, list):
        raise ClientError(f"the server answered with {type(documents).__name__} instead of an array")
    return [parse(type_, document, known_at=known_at) for document in documents]


TIMEOUT = 30.0
"""Seconds that one request may take, unless a caller says otherwise."""

_DESCRIPTION = "/api/openapi.json"
"""Where our services have the descriptions of their APIs, with their names."""

LARGEST_PAGE = 1000
"""Elements that are asked for at once."""

_RETRY_WAIT = 0.1
_LONGEST_RETRY_WAIT = 2.0


class ServiceClient:
    """A client of one server, for use in `async with`.

    `url` is the address of the server, `http://host:port`. `token` is its bearer token, if it needs one. `timeout` is the
    longest time of one request in seconds. `trace` is called with a line for each request. Every method raises ClientError; the
    classes of errors explain their meaning. Raises Rejected if `url` cannot be the address of a server. `name` is the name of
    the service, as in the description of its API.
    """

    name: ClassVar[str] = ""

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = TIMEOUT, trace: Callable[[str], None] | None = None
    ) -> None:
        self._transport = Transport(url, token=token, timeout=timeout, trace=trace)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._transport.__aexit__(*details)

    async def ready(self) -> None:
        """Check that the server can do its work. Raises Unavailable with the reason."""
        await self._transport.request("GET", "/readyz")

    async def readiness(self, concern: str) -> Mapping[str, object]:
        """The readiness of the server for `reads` or `writes`, in its own words. Raises Unavailable with the reason."""
        answer = await self._transport.request("GET", "/readyz", query={"for": concern})
        return answer.document if isinstance(answer.document, dict) else {}

    async def check_service(self, error: ClientError) -> None:
        """Raise OtherService if the error of a request has the cause that another service has the address."""
        if not (error.foreign or isinstance(error, NotFound)):
            return
        name = await self._who_answers()
        if name not in (None, self.name):
            raise OtherService(f"{self._transport.url} is the address of {name}, not of {self.name}") from error
        if name is None and error.foreign:
            raise OtherService(f"{self._transport.url} does not answer as {self.name} does: {error}") from error

    async def _who_answers(self) -> str | None:
        """Return the name in the description of an API; None if there is none to be had."""
        with suppress(ClientError, KeyError, TypeError):
            answer = await self._transport.request("GET", _DESCRIPTION)
            return str(answer.document["info"]["title"])
        return None

    async def _command(
        self,
        path: str,
        body: object,
        *,
        query: Mapping[str, str] | None = None,
        at_least: float = 0.0,
        media: str | None = None,
        again: tuple[type[Exception], ...] = (Unavailable,),
        key: str | None = None,
    ) -> ServerAnswer:
        """A POST: made a second time, under the same key, if it is unknown whether the first took effect.

        `at_least`, `media` as in `Transport.request`; `again`: the errors after which it is made a second time. `key`: the
        idempotency key (None: a new one).
        """
        headers = {"Idempotency-Key": key or str(uuid4())}

        async def post() -> ServerAnswer:
            return await self._transport.request(
                "POST", path, query=query, body=body, headers=headers, at_least=at_least, media=media
            )

        try:
            return await post()
        except again as error:
            if isinstance(error, Unavailable) and not error.sent:
                raise
            asked = error.retry_after if isinstance(error, Unavailable) else None
            await asyncio.sleep(min(asked or _RETRY_WAIT, _LONGEST_RETRY_WAIT))
        return await post()

    async def _list(self, type_: type[R], path: str, query: Mapping[str, str], limit: int | None = None) -> Sequence[R]:
        """The elements of a list, page by page, `limit` at most."""
        rows: list[R] = []
        page = dict(query)
        while limit is None or len(rows) < limit:
            if limit is not None:
                page["limit"] = str(min(limit - len(rows), LARGEST_PAGE))
            answer = await self._transport.request("GET", path, query=page)
            rows += parse_list(type_, answer.document, known_at=answer.sequence)
            if answer.cursor is None:
                break
            page["cursor"] = answer.cursor
        return rows[:limit]

    def _feed(self, path: str, after: str | None) -> AsyncGenerator[Signal, None]:
        """The events of a stream behind an event id (None: from now on), as in `terminalkit.client.service.follow`."""

        def connect(last_id: str | None) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
            return self._transport.stream(path, last_id)

        return follow(connect, after=after)


def only(**values: str | int | None) -> dict[str, str]:
    """Return the values that are not None, as text: `true` and `false` for truth values."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items() if value is not None
    }
