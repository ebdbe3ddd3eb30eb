"""The client of a service's API for commands: requests, answers, and the errors that they mean."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import aiohttp
import attrs
import msgspec

from terminalkit.failure import OF_STATUS, ExitCode


class ClientError(Exception):
    """Root of the package's errors: the server answered something that is not an answer to the request.

    `str(error)` is the text for a user, `status` the HTTP status if there was one, `kind` the type of problem where the
    server says more than its status: `insufficient-stock`. `foreign`: no service of ours answers in this form.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILURE
    asked: ClassVar[bool] = True
    """A server was asked: the program's advice on asking it holds."""

    def __init__(self, message: str, *, status: int | None = None, kind: str | None = None, foreign: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.foreign = foreign


class Rejected(ClientError):
    """The server, or the client before it asks, cannot accept a value (400, 413, 415, 422)."""

    exit_code = ExitCode.USAGE


class OtherService(Rejected):
    """The address belongs to another service."""

    hint: ClassVar[str] = "set the right address with --url"


class NotFound(ClientError):
    """No such repository, project, task, analysis or worker (404, 410)."""

    exit_code = ExitCode.NOT_FOUND


class NotAllowed(ClientError):
    """The token is missing or wrong, or does not allow that (401, 403)."""

    exit_code = ExitCode.NOT_ALLOWED


class Conflicting(ClientError):
    """The present state does not allow that (409, 412)."""

    exit_code = ExitCode.CONFLICT


class Unavailable(ClientError):
    """The server cannot be reached, or cannot do its work now; the same request may succeed later.

    `retry_after`: seconds that the server asks to wait, None if it gives no time. `sent`: the request may have reached the
    server and taken effect. `hint`: advice if the server was reached.
    """

    exit_code = ExitCode.UNAVAILABLE

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None, sent: bool = False) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after
        self.sent = sent
        self.hint = None if status is None else "try again later"


class TimedOut(ClientError):
    """No answer within the time allowed; a request that changes something may have taken effect."""

    exit_code = ExitCode.TIMEOUT


_BY_EXIT_CODE = {kind.exit_code: kind for kind in (Rejected, NotFound, NotAllowed, Conflicting, Unavailable, TimedOut)}


def error_class(status: int) -> type[ClientError]:
    """The class of error that an HTTP status stands for."""
    return _BY_EXIT_CODE.get(OF_STATUS.get(status, ExitCode.FAILURE), ClientError)


HEARTBEATS_MISSED = 45.0
"""Seconds without a byte after which an event stream is taken for dead: the server sends something every 15."""

_LONGEST_TEXT = 400
_PROBLEM = "urn:problem:"
_HOW_LONG_TO_CONNECT = 10.0


@attrs.frozen
class ServerAnswer:
    """The decoded JSON of a 2xx answer (None if it has no body), with the cursor of the next page and the entity tag.

    `sequence` is the position of the log for which the answer is true. None: the server does not name it.
    """

    document: Any
    cursor: str | None = None
    etag: str | None = None
    sequence: int | None = None


def segment(text: str) -> str:
    """A value as one segment of a path. Raises Rejected if it cannot be one."""
    if text in {"", ".", ".."}:
        raise Rejected(f"{text!r} is not an id")
    return quote(text, safe="")


class Transport:
    """The connection to one server, for use in `async with`. `trace` gets a line for each request, without secrets."""

    def __init__(self, url: str, *, token: str | None, timeout: float, trace: Callable[[str], None] | None) -> None:
        self.url = _address(url)
        self._token = token
        self._timeout = timeout
        self._trace = trace or (lambda _: None)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"Accept": "application/json, application/problem+json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        self._session = aiohttp.ClientSession(headers=headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        at_least: float = 0.0,
        media: str | None = None,
    ) -> ServerAnswer:
        """Make a request and wait for its answer, at most `timeout` seconds or, if more, `at_least`. Raises ClientError.

        `body` is sent as JSON; with `media` it is bytes of that type.
        """
        data = body if isinstance(body, bytes) and media is not None else None if body is None else msgspec.json.encode(body)
        sent = dict(headers or {}) | ({} if data is None else {"Content-Type": media or "application/json"})
        limits = aiohttp.ClientTimeout(total=max(self._timeout, at_least), sock_connect=_HOW_LONG_TO_CONNECT)
        async with self._exchange(method, path, query=query, data=data, headers=sent, limits=limits) as response:
            raw = await response.read()
            cursor, etag, sequence = _next_cursor(response), response.headers.get("ETag"), _sequence(response)
        return ServerAnswer(_decoded(raw) if raw else None, cursor, etag, sequence)

    async def text(self, path: str, *, query: Mapping[str, str] | None = None, media: str = "text/plain") -> str:
        """The text at a path, of the type `media`. Raises ClientError."""
        return (await self.content(path, query=query, media=media)).decode(errors="replace")

    async def content(self, path: str, *, query: Mapping[str, str] | None = None, media: str = "text/plain") -> bytes:
        """The bytes at a path, of the type `media`. Raises ClientError."""
        limits = aiohttp.ClientTimeout(total=self._timeout, sock_connect=_HOW_LONG_TO_CONNECT)
        headers = {"Accept": f"{media}, application/problem+json"}
        async with self._exchange("GET", path, query=query, data=None, headers=headers, limits=limits) as response:
            return await response.read()

    @asynccontextmanager
    async def stream(self, path: str, last_id: str | None) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """The bytes of an event stream behind an event id. Raises ClientError, Unavailable where the connection is cut."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"} | (
            {} if last_id is None else {"Last-Event-ID": last_id}
        )
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_HOW_LONG_TO_CONNECT, sock_read=HEARTBEATS_MISSED)
        async with self._exchange("GET", path, query=None, data=None, headers=headers, limits=limits) as response:
            if response.content_type != "text/event-stream":
                raise ClientError(f"{self.url}{path} answered with {response.content_type}, not with an event stream")
            yield response.content.iter_any()

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        assert self._session is not None, "a client is used in `async with`"
        address = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        began = time.monotonic()
        try:
            async with self._session.request(
                method, address, data=data, headers=headers, timeout=limits, allow_redirects=False
            ) as response:
                self._trace(f"{method} {address} {response.status} in {(time.monotonic() - began) * 1000:.0f} ms")
                if not 200 <= response.status < 300:
                    raise _refusal(response, await response.read(), self.url, with_token=self._token is not None)
                yield response
        except TimeoutError as error:
            raise TimedOut(f"no answer from {self.url} within {time.monotonic() - began:.0f} s") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise ClientError(f"the certificate of {self.url} is not trusted: {error.certificate_error}") from error
        except aiohttp.ClientConnectorError as error:
            raise Unavailable(f"cannot reach {self.url}: {_reason(error.os_error)}") from error
        except aiohttp.InvalidURL as error:
            raise Rejected(f"{self.url!r} is not the address of a server") from error
        except aiohttp.ClientError as error:
            raise Unavailable(f"the connection to {self.url} was cut: {error}", sent=True) from error


def _address(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or parts.query or parts.fragment:
        raise Rejected(f"{url!r} is not the address of a server: http://host:port is needed")
    if parts.username is not None or parts.password is not None:
        raise Rejected("the address of the server must not hold a user or password; the token is a separate setting")
    return url.rstrip("/")


def _next_cursor(response: aiohttp.ClientResponse) -> str | None:
    """The cursor in `Link: <...>; rel="next"`. Only that: the address may be a proxy's, and the token is for ours."""
    if "next" not in response.links:
        return None
    query = parse_qs(urlsplit(str(response.links["next"]["url"])).query)
    return query.get("cursor", [None])[0]


def _sequence(response: aiohttp.ClientResponse) -> int | None:
    given = response.headers.get("Event-Sequence", "")
    return int(given) if given.isascii() and given.isdigit() else None


def _reason(error: OSError) -> str:
    """Return why no connection was made. asyncio and the resolver replace the text of the system by their own texts."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


def _decoded(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the server's answer is not JSON: {error}", foreign=True) from error


def _refusal(response: aiohttp.ClientResponse, raw: bytes, url: str, *, with_token: bool) -> ClientError:
    """The error that an answer other than 2xx stands for, in the server's own words if it has any."""
    if 300 <= response.status < 400:
        return Rejected(
            f"{url} answers with a redirect to {response.headers.get('Location', 'elsewhere')}", status=response.status
        )
    problem = _problem(raw)
    message = _message(problem) or f"the server answered {response.status} {response.reason or ''}".rstrip()
    kind = error_class(response.status)
    if issubclass(kind, Unavailable):
        return kind(message, status=response.status, retry_after=_seconds(response.headers.get("Retry-After")), sent=True)
    if kind is NotAllowed and response.status == 401:
        fault = "does not accept the token" if with_token else "asks for a token, and none is set"
        message = f"{url} {fault}: {message}"
    return kind(message, status=response.status, kind=_kind(problem), foreign=not problem)


def _problem(raw: bytes) -> Mapping[str, Any]:
    """The members of a problem document (RFC 9457), none if an answer has no such."""
    try:
        problem = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return problem if isinstance(problem, dict) else {}


def _kind(problem: Mapping[str, Any]) -> str | None:
    type_ = str(problem.get("type", ""))
    return type_.removeprefix(_PROBLEM) if type_.startswith(_PROBLEM) else None


def _message(problem: Mapping[str, Any]) -> str | None:
    """The text of a problem: `message`, `error` or the `reason` of a probe, as specified, with each field error by its name."""
    text = next((str(problem[key]) for key in ("message", "error", "detail", "title", "reason") if problem.get(key)), None)
    errors = problem.get("errors")
    details = [
        f"{error.get('parameter') or str(error.get('pointer') or '').removeprefix('#/')}: {error['detail']}".removeprefix(": ")
        for error in (errors if isinstance(errors, list) else [])
        if isinstance(error, dict) and error.get("detail")
    ]
    said = [detail for detail in details if text is None or detail not in text]
    joined = "; ".join([*([] if text is None else [text]), *said])
    return joined[:_LONGEST_TEXT] or None


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
