"""From an HTTP request to an instance of a route's request class, with every field error at once."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar, get_origin

import attrs
from cattrs.errors import BaseValidationError
from multidict import MultiMapping

from httpkit.errors import FieldError, suggestion
from httpkit.messages.decoding import JSON, TEXT, attributes_of, escape, flat_problems, hook_for, json_name
from httpkit.messages.fields import Hook, Rule, Source, Spec, spec_of
from httpkit.problems import Invalid

R = TypeVar("R")
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

    `invalid` is the status if a body can be read and cannot be right. An unknown query parameter is an error, because a
    misspelt filter would select everything. Unknown members are errors if `refuse_unknown` is set, and ignored otherwise.
    `resumes`: the route is an event stream, which reads the query parameter `last_event_id`.
    """

    def __init__(
        self,
        cls: type[R],
        *,
        invalid: HTTPStatus,
        refuse_unknown: bool,
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
        self._refuse_unknown = refuse_unknown

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
        if self._refuse_unknown and self.members and isinstance(body, dict):
            members = body.keys() - self._known_members
            errors.extend((FieldError("is unknown", f"#/{escape(name)}"), self._invalid) for name in sorted(members))
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
        given: Any
        if field.source is Source.PATH:
            given = path[field.name]
        elif field.repeated:
            given = query.getall(field.name, None)
        elif field.source is Source.QUERY:
            given = query.get(field.name)
            if given is not None and len(query.getall(field.name)) > 1:
                errors.append((field.error("is given more than once"), HTTPStatus.BAD_REQUEST))
                return
            if not given and field.spec.empty:
                return
        else:
            given = headers.get(field.name)
        if field.is_text and given is not None and given.isprintable():
            values[field.attribute.name] = given
        elif given is not None:
            self._make(field, given, values, errors, field.spec.otherwise)
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

    def _unknown_parameter(self, name: str) -> FieldError:
        return FieldError(f"is unknown{suggestion(name, self._known_parameters)}", parameter=name)


_PRECEDENCE = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
_COMMON = {"min_seq"}
_RESUMING = {"last_event_id"}
