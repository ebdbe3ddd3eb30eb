"""Cross-origin resource sharing: answers that pages of other origins may read (https://fetch.spec.whatwg.org/#http-cors-protocol)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from aiohttp import web

_REQUEST_HEADERS = (
    "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Min-Seq, "
    "X-GraphQL-Event-Stream-Token, X-Request-Id"
)
_ANSWER_HEADERS = "ETag, Event-Sequence, Link, Location, Retry-After, X-Request-Id"
_KNOWN_FOR = "600"
"""Seconds for which a browser need not ask again."""


async def add_cross_origin_headers(origins: AbstractSet[str], request: web.Request, response: web.StreamResponse) -> None:
    """Signal on_response_prepare: let pages of these origins read an answer. Cookies are not taken from them."""
    headers = response.headers
    varies, origin = headers.get("Vary"), request.headers.get("Origin")
    headers["Vary"] = "Origin" if varies is None else f"{varies}, Origin"
    if origin is None or origin not in origins:
        return
    headers["Access-Control-Allow-Origin"] = origin
    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        headers["Access-Control-Allow-Methods"] = headers.get("Allow", "GET")
        headers["Access-Control-Allow-Headers"] = _REQUEST_HEADERS
        headers["Access-Control-Max-Age"] = _KNOWN_FOR
    else:
        headers["Access-Control-Expose-Headers"] = _ANSWER_HEADERS
