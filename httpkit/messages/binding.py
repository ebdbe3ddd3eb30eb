"""From an HTTP request to an instance of a route's request class: the body as strict JSON, and every field error at once."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import Any, Generic, NoReturn, TypeVar, cast, get_origin

import attrs
import msgspec
from aiohttp import web
from aiohttp.hdrs import CONTENT_ENCODING, CONTENT_TYPE
from cattrs.errors import BaseValidationError
from multidict import MultiMapping

from httpkit.errors import FieldError, suggestion
from httpkit.messages.fields import (
    JSON,
    TEXT,
    Hook,
    Rule,
    Source,
    Spec,
    attributes_of,
    escape,
    flat_problems,
    hook_for,
    json_name,
    spec_of,
)
from httpkit.problems import Invalid, Malformed, TooLarge, TooSlow, UnsupportedMedia

Bytes = TypeVar("Bytes", bytes, bytearray)

DEPTH = 64
"""How deep lists and objects may be nested."""
_DIGITS = 40
_EXPONENTS = range(-324, 309)
"""Of the numbers that a double can have, subnormal ones included."""
_OUT_OF_RANGE = "the body has a number that is too long or out of range"
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string without an end is a string too: no part of a body is looked at twice, which would take quadratic time."""
_FORM = "application/x-www-form-urlencoded"
_JSON_MEDIA = re.compile(r"application/(json|[a-z0-9.!#$&^_-]+\+json)")


class ClientGone(ConnectionResetError):
    """The client has closed the connection, or had to be cut off: no answer can be sent."""


def check_media(request: web.Request, media: tuple[str, ...] = ()) -> None:
    """Refuse a body of another media type than those (JSON if none is named). A body without a type is taken as it is.

    A form counts as JSON, because curl names that type by default. Raises UnsupportedMedia.
    """
    headers = request.headers
    coding = headers.get(CONTENT_ENCODING)
    if coding is not None and coding.lower() != "identity":
        raise UnsupportedMedia(f"a body with Content-Encoding {coding!r} is not taken; send it as it is")
    named = headers.get(CONTENT_TYPE)
    if named is None or "*/*" in media or (named == "application/json" and not media):
        return
    given = request.content_type.lower()
    if not (_takes(given, media) if media else given == _FORM or _JSON_MEDIA.fullmatch(given)):
        raise UnsupportedMedia(f"a body of type {given!r} is not taken here; possible: {', '.join(media) or 'application/json'}")
    charset = (request.charset or "utf-8").lower()
    if charset not in {"utf-8", "utf8", "us-ascii"}:
        raise UnsupportedMedia(f"charset {charset!r} is not taken; use UTF-8")


def _takes(given: str, media: tuple[str, ...]) -> bool:
    return given in media or f"{given.partition('/')[0]}/*" in media


async def read_body(request: web.Request, *, limit: int, deadline: float) -> bytes:
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


def _limited(body: Bytes, limit: int) -> Bytes:
    if len(body) > limit:
        raise TooLarge(f"the body is larger than {limit} bytes")
    return body


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


T = TypeVar("T")
R = TypeVar("R")
_TEXT = Rule()


def encode_cursor(key: tuple[Any, ...]) -> str:
    """The cursor for a key of strings, numbers and None."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).rstrip(b"=").decode()


def decode_cursor(text: str, kind: type[T]) -> T:
    """The key in a cursor, of this type (`tuple[str, int]`). Raises Invalid for any other text."""
    try:
        padded = text + "=" * (-len(text) % 4)
        key = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=kind)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise _not_a_cursor() from None
    if any(_TEXT.broken(part) or _too_large(part) for part in cast("tuple[Any, ...]", key)):
        raise _not_a_cursor()
    return key


def page_of(rows: Sequence[R], limit: int, key: Callable[[R], tuple[Any, ...]]) -> tuple[Sequence[R], str | None]:
    """The first `limit` of rows of which one more was read, and the cursor of the next page: None if these are all.

    `key` gives the strings and numbers that a row is found by, for `decode_cursor`.
    """
    page = rows[:limit]
    return page, encode_cursor(key(page[-1])) if len(rows) > len(page) and page else None


def _too_large(part: Any) -> bool:
    """Whether a database has no such number."""
    return isinstance(part, int) and not -(2**63) <= part < 2**63


def _not_a_cursor() -> Invalid:
    """The error for a text that cannot be a cursor of the list."""
    return Invalid([FieldError("is not a cursor of this list", parameter="cursor")])


Errors = list[tuple[FieldError, HTTPStatus]]
_PARAMETERS = (Source.PATH, Source.QUERY, Source.HEADER)


@attrs.frozen
class BoundField:
    """A field of a request class, compiled: its name inside and outside, and the hook that makes its value."""

    attribute: attrs.Attribute[Any]
    name: str
    spec: Spec
    hook: Hook
    source: Source
    required: bool
    repeated: bool
    """Whether it is a query parameter that may be given several times."""
    is_text: bool
    """Whether any text without control characters will do as it is."""

    @classmethod
    def of(cls, attribute: attrs.Attribute[Any]) -> BoundField:
        """Compile a field."""
        spec = spec_of(attribute)
        converter = TEXT if spec.source in _PARAMETERS else JSON
        return cls(
            attribute,
            json_name(attribute),
            spec,
            hook_for(attribute, converter),
            source=spec.source,
            required=attribute.default is attrs.NOTHING,
            repeated=spec.source is Source.QUERY and get_origin(attribute.type) in (list, tuple),
            is_text=spec.source in _PARAMETERS and attribute.type is str and spec.parse is None and spec.rule == Rule(),
        )

    def error(self, detail: str) -> FieldError:
        """The fault of the value."""
        if self.source in _PARAMETERS:
            return FieldError(detail, parameter=self.name)
        return FieldError(detail, pointer=f"#/{escape(self.name)}" if self.source is Source.MEMBER else "#")


class Binder(Generic[R]):
    """Makes instances of one request class.

    `invalid` is the status if a body can be read and cannot be right. An unknown query parameter or member of the body is an
    error: a misspelt filter would select everything, and a misspelt setting would have no effect.
    `resumes`: the route is an event stream, which reads the query parameter `last_event_id`.
    """

    def __init__(
        self,
        cls: type[R],
        *,
        invalid: HTTPStatus,
        resumes: bool = False,
    ) -> None:
        self.cls = cls
        self.fields = tuple(BoundField.of(attribute) for attribute in attributes_of(cls))
        self._invalid = invalid
        self._parameters = tuple(field for field in self.fields if field.source in _PARAMETERS)
        self.members = tuple(field for field in self.fields if field.source is Source.MEMBER)
        payloads = [field for field in self.fields if field.source is Source.PAYLOAD]
        if len(payloads) + bool(self.members) > 1:
            raise ValueError(f"{cls.__name__}: the body is either one payload or members")
        self.payload = payloads[0] if payloads else None
        """The field that takes the whole body, if there is one."""
        self.takes_body = bool(self.members or payloads)
        """Whether a request has a body."""
        self.takes_raw = self.payload is not None and self.payload.attribute.type in (bytes, str)
        """Whether the body goes to its field undecoded."""
        self._needs_members = any(field.required for field in self.members)
        common = _COMMON | (_RESUMING if resumes else set())
        self._known_parameters = {field.name for field in self.fields if field.source is Source.QUERY} | common
        self._known_members = {field.name for field in self.members}
        self.personal = frozenset(field.name for field in self.members if field.spec.personal)
        """The members of the body that are about a person."""

    @property
    def media(self) -> tuple[str, ...]:
        """The media types of the body; none: JSON."""
        return self.payload.spec.media if self.payload else ()

    def field_error(self, name: str, detail: str) -> FieldError:
        """An error about a field, by its name inside or outside, as a domain knows it."""
        for field in self.fields:
            if name in (field.name, field.attribute.name):
                return field.error(detail)
        return FieldError(f"{name}: {detail}")

    def bind(
        self, path: Mapping[str, str], query: MultiMapping[str], headers: Mapping[str, str], body: Any, *, has_body: bool
    ) -> R:
        """The request. `body` is the decoded JSON, or bytes or text of a raw payload. Raises Invalid with all field errors."""
        errors: Errors = []
        values: dict[str, Any] = {}
        for field in self._parameters:
            self._take(field, path, query, headers, values, errors)
        if self.takes_body:
            self._take_body(body, values, errors, has_body=has_body)
        if query:
            unknown = sorted(query.keys() - self._known_parameters)
            errors.extend((self._unknown_parameter(name), HTTPStatus.BAD_REQUEST) for name in unknown)
        if self.members and isinstance(body, dict):
            unknown = sorted(body.keys() - self._known_members)
            errors.extend((self._unknown_member(name), self._invalid) for name in unknown)
        if errors:
            statuses = {status for _, status in errors}
            first = next((status for status in (*_PRECEDENCE, self._invalid) if status in statuses), max(statuses))
            raise Invalid((error for error, _ in errors), first)
        try:
            return self.cls(**values)
        except ValueError as error:
            raise Invalid([FieldError(str(error))], self._invalid) from error

    def _take(
        self,
        field: BoundField,
        path: Mapping[str, str],
        query: MultiMapping[str],
        headers: Mapping[str, str],
        values: dict[str, Any],
        errors: Errors,
    ) -> None:
        """Add the value of a parameter."""
        raw: Any
        if field.source is Source.PATH:
            raw = path[field.name]
        elif field.repeated:
            raw = query.getall(field.name, None)
        elif field.source is Source.QUERY:
            raw = query.get(field.name)
            if raw is not None and len(query.getall(field.name)) > 1:
                errors.append((field.error("is given more than once"), HTTPStatus.BAD_REQUEST))
                return
            if not raw and field.spec.empty:
                return
        else:
            raw = headers.get(field.name)
        if field.is_text and raw is not None and raw.isprintable():
            values[field.attribute.name] = raw
        elif raw is not None:
            self._make(field, raw, values, errors, field.spec.otherwise)
        elif field.required:
            errors.append((field.error("is required"), HTTPStatus.BAD_REQUEST))

    def _take_body(self, body: Any, values: dict[str, Any], errors: Errors, *, has_body: bool) -> None:
        """Add the payload, or the members."""
        if self.payload is not None:
            if has_body or self.takes_raw:
                self._make(self.payload, body, values, errors, self._invalid)
            elif self.payload.required:
                errors.append((FieldError("a body is required", pointer="#"), HTTPStatus.BAD_REQUEST))
            return
        if not has_body and not self._needs_members:
            return
        if not isinstance(body, dict):
            detail = "must be an object" if has_body else "a JSON object is required"
            errors.append((FieldError(detail, pointer="#"), HTTPStatus.BAD_REQUEST))
            return
        for field in self.members:
            if field.name in body:
                self._make(field, body[field.name], values, errors, self._invalid)
            elif field.required:
                errors.append((field.error("is required"), self._invalid))

    @staticmethod
    def _make(field: BoundField, given: Any, values: dict[str, Any], errors: Errors, status: HTTPStatus) -> None:
        try:
            values[field.attribute.name] = field.hook(given, field.attribute.type)
        except (ValueError, ArithmeticError, BaseValidationError) as error:
            base = field.error("").pointer
            for pointer, detail in flat_problems(error, base or "#"):
                errors.append((FieldError(detail, pointer) if base else field.error(detail), status))

    def _unknown_member(self, name: str) -> FieldError:
        return FieldError(f"is unknown{suggestion(name, self._known_members)}", f"#/{escape(name)}")

    def _unknown_parameter(self, name: str) -> FieldError:
        return FieldError(f"is unknown{suggestion(name, self._known_parameters)}", parameter=name)


_PRECEDENCE = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
_COMMON = {"min_seq"}
_RESUMING = {"last_event_id"}
