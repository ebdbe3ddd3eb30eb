"""The base of a client of one service: commands that take effect once, lists page by page, the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import ClassVar, Self
from uuid import uuid4

from terminalkit.client.errors import ClientError, NotFound, OtherService, Unavailable
from terminalkit.client.feed import Signal, follow
from terminalkit.client.resources import R, parse_list
from terminalkit.client.transport import ServerAnswer, Transport

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
