"""A client of a service: its session, its resources, and requests that are repeated while it is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar
from uuid import uuid4

import attrs
import msgspec

from terminalkit.client.errors import ClientError, NotFound, OtherService, Unavailable
from terminalkit.client.feed import Signal, follow
from terminalkit.client.transport import ServerAnswer, Transport
from terminalkit.commands.command import command
from terminalkit.config.flags import SettingFlags, SettingSources
from terminalkit.display.output import Output
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

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

    `client` may import modules that are slow. `not_found` and `time_limit` are as in `terminalkit.commands.command.command`,
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

_DESCRIPTIONS = ("/api/openapi.json", "/openapi.json")
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
        for path in _DESCRIPTIONS:
            with suppress(ClientError, KeyError, TypeError):
                answer = await self._transport.request("GET", path)
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
        found: list[R] = []
        page = dict(query)
        while limit is None or len(found) < limit:
            if limit is not None:
                page["limit"] = str(min(limit - len(found), LARGEST_PAGE))
            answer = await self._transport.request("GET", path, query=page)
            found += parse_list(type_, answer.document, known_at=answer.sequence)
            if answer.cursor is None:
                break
            page["cursor"] = answer.cursor
        return found[:limit]

    def _feed(self, path: str, after: str | None) -> AsyncGenerator[Signal, None]:
        """The events of a stream behind an event id (None: from now on), as in `terminalkit.client.feed.follow`."""

        def connect(last_id: str | None) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
            return self._transport.stream(path, last_id)

        return follow(connect, after=after)


def only(**values: str | int | None) -> dict[str, str]:
    """Return the values that are not None, as text: `true` and `false` for truth values."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items() if value is not None
    }
