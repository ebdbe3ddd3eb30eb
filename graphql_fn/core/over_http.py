"""GraphQL over HTTP: from a request to an answer, for any HTTP server.

Where the draft of 2026-08-06 and the audit of the package `graphql-http` differ, the audit counts: 400 if a document or its
variables cannot be right, and 200 for them where the client takes `application/json`, as the function has always answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from graphql_fn.core.errors import BadRequest, GraphqlFnError, MethodNotAllowed, NotAcceptable
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.request import GraphQLRequest, decode, from_members, from_text, text_of
from graphql_fn.core.result import QueryOutcome

JSON = "application/json"
RESPONSE = "application/graphql-response+json"
HTML = "text/html"
METHODS = ("GET", "HEAD", "POST")

_HEADERS = {media: {"Content-Type": f"{media}; charset=utf-8", "Vary": "Accept"} for media in (JSON, RESPONSE)}
_IS_JSON = re.compile(r"application/(json|[a-z0-9.!#$&^_-]+\+json)")
_CHARSET = re.compile(r'charset\s*=\s*"?([^\s";]+)')
_SEQUENCE = re.compile(r"[0-9]{1,18}")
_UTF8 = frozenset({"utf-8", "utf8", "us-ascii"})
_STATUS = {
    QueryOutcome.EXECUTED: HTTPStatus.OK,
    QueryOutcome.REFUSED: HTTPStatus.BAD_REQUEST,
    QueryOutcome.OVER_LIMIT: HTTPStatus.BAD_REQUEST,
    QueryOutcome.OUT_OF_TIME: HTTPStatus.GATEWAY_TIMEOUT,
    QueryOutcome.BEHIND: HTTPStatus.SERVICE_UNAVAILABLE,
    QueryOutcome.NOT_WRITTEN: HTTPStatus.CONFLICT,
    QueryOutcome.PARKED: HTTPStatus.SERVICE_UNAVAILABLE,
    QueryOutcome.CHANGES: HTTPStatus.METHOD_NOT_ALLOWED,
}

_MORE = {QueryOutcome.CHANGES: {"Allow": "POST"}, QueryOutcome.BEHIND: {"Retry-After": "1"}}
"""Headers of answers with an outcome."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The relevant parts of a request.

    `parameters` are the decoded query string. `after` is the id of the last event. `min_sequence` is the text of the header
    Min-Seq, or of the parameter `min_seq`.
    """

    method: str
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict)
    content_type: str | None = None
    accept: str | None = None
    body: bytes = b""
    request_id: str | None = None
    after: str | None = None
    min_sequence: str | None = None


class HttpAnswer(msgspec.Struct, frozen=True):
    """An answer. `outcome` is None if there was no request to evaluate."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    outcome: QueryOutcome | None = None


async def answer(evaluator: Evaluator, request: HttpRequest) -> HttpAnswer:
    """Answer a request. Raises what `Evaluator.evaluate` raises."""
    media = JSON
    try:
        media = negotiated(request.accept)
        result = await evaluator.evaluate(read(request))
    except GraphqlFnError as error:
        return refusal(error, media)
    status = _STATUS[result.outcome]
    if result.outcome is QueryOutcome.REFUSED and media == JSON:
        status = HTTPStatus.OK
    headers = None if status is HTTPStatus.OK else _MORE.get(result.outcome)
    return _answer(status, media, result.document, headers, result.outcome)


def refusal(error: GraphqlFnError, media: str = JSON) -> HttpAnswer:
    """The answer to an input that cannot be evaluated."""
    headers = {"Allow": ", ".join(METHODS)} if isinstance(error, MethodNotAllowed) else None
    return _answer(error.status, media, {"errors": [{"message": str(error), "extensions": {"code": error.status.name}}]}, headers)


def _answer(
    status: int, media: str, document: dict[str, Any], headers: Mapping[str, str] | None, outcome: QueryOutcome | None = None
) -> HttpAnswer:
    sent = {**_HEADERS[media], **headers} if headers else _HEADERS[media]
    return HttpAnswer(status, sent, msgspec.json.encode(document), outcome)


def read(request: HttpRequest) -> GraphQLRequest:
    """The GraphQL request in an HTTP request. Raises BadRequest, MethodNotAllowed."""
    if request.method == "POST":
        return _from_body(request)
    if request.method not in METHODS:
        raise MethodNotAllowed(f"{request.method} is not possible here; possible: {', '.join(METHODS)}")
    members: dict[str, Any] = dict(request.parameters)
    for name in ("variables", "extensions"):
        if members.get(name):
            members[name] = decode(members[name], name)
        else:
            members.pop(name, None)
    more = {"request_id": request.request_id, "after": request.after, "min_sequence": _least(request)}
    return from_members(members, only_queries=True, **more)


def _from_body(request: HttpRequest) -> GraphQLRequest:
    is_json, charset = _content(request.content_type)
    if charset is not None:
        raise BadRequest(f"charset {charset!r} is not taken; use UTF-8")
    if is_json:
        return from_members(
            decode(request.body, "the body"), request_id=request.request_id, after=request.after, min_sequence=_least(request)
        )
    return from_text(text_of(request.body), request_id=request.request_id, after=request.after, min_sequence=_least(request))


def _least(request: HttpRequest) -> int | None:
    """The sequence that a request waits for. Raises BadRequest."""
    if request.min_sequence is None:
        return None
    if not _SEQUENCE.fullmatch(request.min_sequence):
        raise BadRequest("Min-Seq must be a sequence number of the log")
    return int(request.min_sequence)


@lru_cache(maxsize=256)
def _content(content_type: str | None) -> tuple[bool, str | None]:
    """Whether a body of this type is JSON, and its charset if that is not taken."""
    media, _, parameters = (content_type or "").lower().partition(";")
    charset = _CHARSET.search(parameters)
    wrong = charset[1] if charset is not None and charset[1] not in _UTF8 else None
    return _IS_JSON.fullmatch(media.strip()) is not None, wrong


@lru_cache(maxsize=256)
def negotiated(accept: str | None) -> str:
    """The media type of the answer: JSON, unless the client likes the other more, or names it and likes it no less.

    A media range with a wildcard counts for each type that the header does not name. Raises NotAcceptable.
    """
    if not accept or accept == "*/*":
        return JSON
    liked = weights(accept)
    others = liked.get("application/*", liked.get("*/*", 0.0))
    json, response = liked.get(JSON, others), liked.get(RESPONSE, others)
    if max(json, response) <= 0:
        raise NotAcceptable(f"results are {JSON} or {RESPONSE}")
    return RESPONSE if response > json or (response == json and RESPONSE in liked) else JSON


def weights(accept: str) -> dict[str, float]:
    """The media ranges of an Accept header, with their weights."""
    return dict(map(_range, accept.split(",")))


@lru_cache(maxsize=256)
def wants_page(accept: str | None) -> bool:
    """Whether a client names HTML and likes no result as well: a browser, asked for the address of a function."""
    if accept is None or HTML not in accept.lower():
        return False
    liked = weights(accept)
    return liked.get(HTML, 0) > max(liked.get(JSON, 0), liked.get(RESPONSE, 0))


def _range(text: str) -> tuple[str, float]:
    """A media range and its weight (RFC 9110, 12.5.1)."""
    media, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            weight = float(value) if re.fullmatch(r"[01](\.\d{0,3})?", value.strip()) else 0.0
    return media, weight
