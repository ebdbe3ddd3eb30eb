"""The body of a request: read within a size and a time, decoded as strict JSON.

What JSON parsers let pass and databases choke on is refused here: NaN and Infinity, numbers of any size, names given twice, lone
surrogates, nesting without end.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Container
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TypeVar

from aiohttp import web
from aiohttp.hdrs import CONTENT_ENCODING, CONTENT_TYPE

from httpkit.problems import Malformed, TooLarge, TooSlow, UnsupportedMedia

Bytes = TypeVar("Bytes", bytes, bytearray)

DEPTH = 64
"""How deep lists and objects may be nested."""
_DIGITS = 40
_EXPONENTS = range(-324, 309)
"""Of the numbers that a double can have, subnormal ones included."""
_OUT_OF_RANGE = "the body has a number that is too long or out of range"
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string without an end is a string too: no part of a body is looked at twice, which would take quadratic time."""
_JSON_MEDIA = re.compile(r"application/(json|[a-z0-9.!#$&^_-]+\+json)")


class ClientGone(ConnectionResetError):
    """The client has closed the connection, or had to be cut off: no answer can be sent."""


def check_media(request: web.Request, media: tuple[str, ...] = (), *, also_json: Container[str] = ()) -> None:
    """Refuse a body of another media type than those (JSON if none is named). A body without a type is taken as it is.

    Media types of `also_json` count as JSON. Raises UnsupportedMedia.
    """
    headers = request.headers
    coding = headers.get(CONTENT_ENCODING)
    if coding is not None and coding.lower() != "identity":
        raise UnsupportedMedia(f"a body with Content-Encoding {coding!r} is not taken; send it as it is")
    named = headers.get(CONTENT_TYPE)
    if named is None or "*/*" in media or (named == "application/json" and not media):
        return
    given = request.content_type.lower()
    if not (_takes(given, media) if media else given in also_json or _JSON_MEDIA.fullmatch(given)):
        raise UnsupportedMedia(f"a body of type {given!r} is not taken here; possible: {', '.join(media) or 'application/json'}")
    charset = (request.charset or "utf-8").lower()
    if charset not in {"utf-8", "utf8", "us-ascii"}:
        raise UnsupportedMedia(f"charset {charset!r} is not taken; use UTF-8")


def _takes(given: str, media: tuple[str, ...]) -> bool:
    return given in media or f"{given.partition('/')[0]}/*" in media


async def read(request: web.Request, *, limit: int, deadline: float) -> bytes:
    """The whole body, of at most `limit` bytes, arrived within `deadline` seconds. Raises TooLarge, TooSlow, Malformed."""
    announced = request.content_length
    if announced is not None and announced > limit:
        raise TooLarge(f"the body has {announced} bytes; at most {limit} are taken")
    try:
        if request.content.is_eof():
            return _limited(request.content.read_nowait(), limit)
        async with asyncio.timeout(deadline):
            return await _collect(request, limit)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {deadline:g} s") from None
    except web.RequestPayloadError as error:
        raise Malformed("the body is not what its headers say") from error
    except ConnectionError as error:
        raise ClientGone("the client closed the connection while sending") from error


async def _collect(request: web.Request, limit: int) -> bytes:
    found = bytearray()
    while chunk := await request.content.readany():
        found += chunk
        _limited(found, limit)
    return bytes(found)


def _limited(found: Bytes, limit: int) -> Bytes:
    if len(found) > limit:
        raise TooLarge(f"the body is larger than {limit} bytes")
    return found


def body_text(raw: bytes) -> str:
    """The text of a body. Raises Malformed if it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"the body is not UTF-8: byte {error.start}") from error


def parse_body(raw: bytes) -> Any:
    """The value of a JSON body: objects, lists, strings, int, Decimal, bool, None. Raises Malformed."""
    decoded = body_text(raw)
    _check_depth(raw)
    try:
        value = _DECODER.decode(decoded)
        if "\\u" in decoded:
            json.dumps(value, ensure_ascii=False, default=str).encode()
    except json.JSONDecodeError as error:
        raise Malformed(f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from error
    except UnicodeEncodeError as error:
        raise Malformed("the body is not JSON: it has half of a surrogate pair") from error
    return value


def _check_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") <= DEPTH:
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(raw):
        token = found[0]
        depth += (token in b"[{") - (token in b"]}") if len(token) == 1 else 0
        if depth > DEPTH:
            raise Malformed(f"the body is nested deeper than {DEPTH} levels")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"the body is ambiguous: {twice!r} is given twice in one object")
    return members


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise Malformed(f"the body has a number of more than {_DIGITS} digits")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise Malformed(_OUT_OF_RANGE) from None
    if len(digits) > _DIGITS or number.adjusted() not in _EXPONENTS:
        raise Malformed(_OUT_OF_RANGE)
    return number


def _constant(name: str) -> NoReturn:
    raise Malformed(f"the body is not JSON: {name} is not a JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_int=_whole, parse_float=_decimal, parse_constant=_constant)
