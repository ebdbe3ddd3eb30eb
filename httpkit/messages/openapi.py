"""The OpenAPI 3.1 document of a route table. It is wholly generated, so that it cannot drift from the served routes."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from http import HTTPStatus
from typing import Any, Literal, get_args, get_origin

import attrs
import msgspec

from httpkit.edge import KEY_HEADER, KEY_PATTERN, MIN_SEQ, SEQUENCE_HEADER, Edge, Operation
from httpkit.messages.binding import Binder, BoundField
from httpkit.messages.encoding import CSV_MEDIA, encode, plain
from httpkit.messages.fields import (
    PRINTABLE,
    PRINTABLE_LINES,
    UNSET,
    Rule,
    Source,
    attributes_of,
    has_unset,
    is_union,
    json_name,
    spec_of,
    without_unset,
)
from httpkit.problems import MEDIA_TYPE
from httpkit.routes import Scope

Schema = dict[str, Any]
Mode = Literal["request", "answer"]

_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    msgspec.Raw: {},
}
_BARE = Rule()
"""The rule of values that no rule names."""


def description_of(thing: Any) -> str | None:
    """The docstring of a class or function, as text."""
    return inspect.cleandoc(thing.__doc__) if thing.__doc__ else None


class Schemas:
    """The components of one document, filled as types are asked for."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._classes: dict[str, tuple[type, Mode]] = {}

    def of(self, type_: Any, mode: Mode) -> Schema:
        """The schema of a type. Raises TypeError for one that JSON has no word for."""
        type_ = without_unset(type_)
        if isinstance(type_, type) and attrs.has(type_):
            return {"$ref": f"#/components/schemas/{self._component(type_, mode)}"}
        if type_ in _SCALARS:
            return dict(_SCALARS[type_])
        if isinstance(type_, type) and issubclass(type_, Enum):
            return _choice([item.value for item in type_])
        if isinstance(type_, types.GenericAlias) or get_origin(type_) is not None:
            return self._generic(type_, get_origin(type_), get_args(type_), mode)
        raise TypeError(f"no JSON schema for {type_!r}")

    def _generic(self, type_: Any, origin: Any, arguments: tuple[Any, ...], mode: Mode) -> Schema:
        if origin is Literal:
            return _choice(list(arguments))
        if is_union(type_):
            parts = [self.of(part, mode) for part in arguments]
            if all(set(part) == {"type"} for part in parts):
                return {"type": [part["type"] for part in parts]}
            return {"anyOf": parts}
        if origin in (list, tuple, Sequence):
            return {"type": "array", "items": self.of(arguments[0], mode)}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1], mode)}
        raise TypeError(f"no JSON schema for {type_!r}")

    def field(self, attribute: attrs.Attribute[Any], mode: Mode) -> Schema:
        """The schema of a field, with its limits, description, example and default."""
        spec = spec_of(attribute)
        schema = dict(spec.schema) if spec.schema is not None else self.of(attribute.type, mode)
        schema = _limited(schema, spec.rule, is_checked=mode == "request" and spec.source is not Source.PAYLOAD)
        extra: Schema = {}
        if spec.description is not None:
            extra["description"] = spec.description
        if spec.example is not None:
            extra["examples"] = [plain(spec.example)]
        if mode == "request" and attribute.default not in (attrs.NOTHING, UNSET, None) and _is_plain(attribute.default):
            extra["default"] = plain(attribute.default)
        return schema | extra

    def object(self, cls: type, mode: Mode, *, closed: bool = False) -> Schema:
        """The schema of the members of a class. `closed`: other members are refused."""
        members = [attribute for attribute in attributes_of(cls) if spec_of(attribute).source is Source.MEMBER]
        schema: Schema = {
            "type": "object",
            "properties": {json_name(attribute): self.field(attribute, mode) for attribute in members},
        }
        required = [json_name(attribute) for attribute in members if _is_required(attribute, mode)]
        if required:
            schema["required"] = required
        if (text := description_of(cls)) is not None:
            schema["description"] = text
        if closed:
            schema["additionalProperties"] = False
        return schema

    def _component(self, cls: type, mode: Mode) -> str:
        name = cls.__name__
        known = self._classes.get(name)
        if known is not None and known[0] is cls and known[1] != mode:
            name += "Input" if mode == "request" else "Answer"
            known = self._classes.get(name)
        if known is None:
            self._classes[name] = (cls, mode)
            self.components[name] = {}
            self.components[name] = self.object(cls, mode)
        elif known != (cls, mode):
            raise ValueError(f"two classes are called {name}: {known[0]!r} and {cls!r}")
        return name


def _is_required(attribute: attrs.Attribute[Any], mode: Mode) -> bool:
    if mode == "request":
        return attribute.default is attrs.NOTHING
    return not has_unset(attribute.type)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, Enum, tuple))


def _choice(values: list[Any]) -> Schema:
    return {"type": "string" if all(isinstance(value, str) for value in values) else "integer", "enum": values}


def _limited(schema: Schema, rule: Rule, *, is_checked: bool) -> Schema:
    """The schema of a value within the limits of a rule, with the values inside of it. `is_checked`: texts have no controls."""
    if "anyOf" in schema:
        return schema | {"anyOf": [_limited(part, rule, is_checked=is_checked) for part in schema["anyOf"]]}
    if schema.get("type") == "null" or "$ref" in schema:
        return schema
    schema = schema | rule.schema(_json_type(schema))
    if is_checked and _is_any_text(schema):
        schema["pattern"] = PRINTABLE_LINES if rule.multiline else PRINTABLE
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            schema[inside] = _limited(schema[inside], rule.items or _BARE, is_checked=is_checked)
    if is_checked and isinstance(schema.get("additionalProperties"), dict):
        schema["propertyNames"] = {"pattern": PRINTABLE}
    return schema


def _is_any_text(schema: Schema) -> bool:
    """Whether the schema does not restrict the text yet."""
    return _json_type(schema) == "string" and not schema.keys() & {"pattern", "format", "enum", "const"}


def _json_type(schema: Mapping[str, Any]) -> object:
    found = schema.get("type")
    return next((name for name in found if name != "null"), None) if isinstance(found, list) else found


_PROBLEM = "Problem"
_ALWAYS = {400: "The request cannot be right.", 500: "A fault of the service; the log has it under the request id."}
_BUSY = "The service, its log or its database cannot answer now; try again after Retry-After seconds."
_OF_BODIES = {
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is of a media type that is not taken here.",
}
_LAST_EVENT_ID: Schema = {"type": "string", "pattern": r"^[0-9]{1,19}(\.[0-9]{1,6})?$"}


def document(operations: Iterable[Operation[Any]], edge: Edge) -> dict[str, Any]:
    """The document for these operations."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        item = paths.setdefault(operation.route.path, {})
        item[operation.route.method.lower()] = _operation(operation, edge, schemas)
    info: dict[str, Any] = {"title": edge.title, "version": edge.version}
    if edge.description is not None:
        info["description"] = edge.description
    components: dict[str, Any] = {"schemas": {_PROBLEM: _problem(edge.error_key), **dict(sorted(schemas.components.items()))}}
    body: dict[str, Any] = {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}
    if edge.guard.knows_tokens:
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": edge.guard.cookie},
        }
        body["security"] = _security(edge, Scope.READ)
    return body


def _security(edge: Edge, scope: Scope) -> list[dict[str, list[str]]]:
    """The tokens that an operation takes, with their scope unless any will do; `{}` if it also answers without one."""
    roles = [] if scope is Scope.READ else [scope.value]
    nothing: list[dict[str, list[str]]] = [] if edge.guard.required else [{}]
    return [{"token": roles}, {"session": roles}, *nothing]


def _operation(operation: Operation[Any], edge: Edge, schemas: Schemas) -> dict[str, Any]:
    route, binder = operation.route, operation.binder
    described: dict[str, Any] = {"operationId": route.operation_id, "summary": route.summary}
    if (text := route.description or description_of(route.handler)) is not None:
        described["description"] = text
    if route.tags:
        described["tags"] = list(route.tags)
    if route.deprecated:
        described["deprecated"] = True
    if edge.guard.knows_tokens and (route.open is True or route.scope is not Scope.READ):
        described["security"] = [] if route.open is True else _security(edge, route.scope)
    if parameters := _parameters(operation, edge, schemas):
        described["parameters"] = parameters
    if binder.takes_body:
        described["requestBody"] = _body(binder, schemas)
    described["responses"] = _success(operation, edge, schemas) | _errors(operation, edge)
    return described


def _parameters(operation: Operation[Any], edge: Edge, schemas: Schemas) -> list[dict[str, Any]]:
    route = operation.route
    parameters = [
        _parameter(field, schemas)
        for field in operation.binder.fields
        if field.source in (Source.PATH, Source.QUERY, Source.HEADER)
    ]
    if _takes_min_seq(operation, edge):
        text = "Wait until the answer is true for this sequence of the log, as an earlier answer's Event-Sequence gave it."
        parameters.append(_given(MIN_SEQ, "query", {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}, text))
    if route.idempotent:
        text = "A request that is repeated with the same key takes effect once. With another request the key is refused."
        parameters.append(_given(KEY_HEADER, "header", {"type": "string", "pattern": f"^{KEY_PATTERN}$"}, text))
    if route.is_stream:
        text = "Go on after this event: each later one is sent once, in order."
        own = {parameter["name"] for parameter in parameters}
        resuming = [
            _given("Last-Event-ID", "header", _LAST_EVENT_ID, text),
            _given("last_event_id", "query", _LAST_EVENT_ID, f"{text} For clients that cannot set the header."),
        ]
        parameters.extend(parameter for parameter in resuming if parameter["name"] not in own)
    return parameters


def _takes_min_seq(operation: Operation[Any], edge: Edge) -> bool:
    return operation.route.method == "GET" and edge.tables is not None and not operation.route.is_stream


def _given(name: str, where: str, schema: Schema, text: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": False, "schema": schema, "description": text}


def _parameter(field: BoundField, schemas: Schemas) -> dict[str, Any]:
    schema = schemas.field(field.attribute, "request")
    parameter: dict[str, Any] = {"name": field.name, "in": field.source.value, "required": field.required}
    if (text := schema.pop("description", None)) is not None:
        parameter["description"] = text
    parameter["schema"] = _without_null(schema)
    if field.spec.empty:
        parameter["allowEmptyValue"] = True
        parameter["schema"] = {"anyOf": [parameter["schema"], {"const": ""}]}
    return parameter


def _without_null(schema: Schema) -> Schema:
    """A parameter is there or not; there is no text for null."""
    if isinstance(schema.get("type"), list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        return schema | {"type": kinds[0] if len(kinds) == 1 else kinds}
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part != {"type": "null"}]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return rest | parts[0] if len(parts) == 1 else rest | {"anyOf": parts}
    return schema


def _body(binder: Binder[Any], schemas: Schemas) -> dict[str, Any]:
    if binder.payload is not None:
        media = binder.media or ("application/json",)
        schema = schemas.field(binder.payload.attribute, "request")
        text = {"type": "string"}
        content = {name: {"schema": schema if _is_json(name) or schema.get("type") == "string" else text} for name in media}
        return {"required": binder.payload.required, "content": content}
    schema = schemas.object(binder.cls, "request", closed=True)
    required = any(field.required for field in binder.members)
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _is_json(media: str) -> bool:
    return media == "application/json" or media.endswith("+json")


def _success(operation: Operation[Any], edge: Edge, schemas: Schemas) -> dict[str, Any]:
    route = operation.route
    responses: dict[str, Any] = {}
    for status in (route.status, *route.also):
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if edge.tables is not None and not (route.is_stream or route.produces):
            answer["headers"] = {
                SEQUENCE_HEADER: {"description": "The sequence of the log for which this is true.", "schema": {"type": "integer"}}
            }
        if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED) and (content := _content(operation, edge, schemas)):
            answer["content"] = content
        responses[str(status)] = answer
    return responses


def _content(operation: Operation[Any], edge: Edge, schemas: Schemas) -> dict[str, Any] | None:
    route = operation.route
    if route.events is not None:
        data = {name: schemas.of(type_, "answer") for name, type_ in route.events.items()}
        schema = {"type": "string", "description": "Events with the fields id, event and data (JSON).", "x-events": data}
        return {"text/event-stream": {"schema": schema}}
    if route.produces:
        made: dict[str, Schema] = {media: {"schema": {} if _is_json(media) else {"type": "string"}} for media in route.produces}
        if "application/json" in made and route.operation_id in edge.examples:
            made["application/json"]["example"] = edge.examples[route.operation_id]
        return made
    if route.answer_type is type(None):
        return None
    content: dict[str, Schema] = {"application/json": {"schema": schemas.of(route.answer_type, "answer")}}
    if route.operation_id in edge.examples:
        content["application/json"]["example"] = edge.examples[route.operation_id]
    if route.csv is not None:
        content[CSV_MEDIA] = {"schema": {"type": "string", "description": "The same as lines, the first with the names."}}
    return content


def _errors(operation: Operation[Any], edge: Edge) -> dict[str, Any]:
    route, binder = operation.route, operation.binder
    texts: dict[int, str] = {**_ALWAYS, 503: _BUSY}
    if binder.takes_body:
        texts |= _OF_BODIES | {int(edge.invalid): "Values of the body cannot be right."}
    if route.idempotent:
        texts[422] = " ".join(filter(None, (texts.get(422), "The Idempotency-Key was used for another request.")))
    if edge.guard.knows_tokens and route.open is not True:
        texts[401] = "The token is missing, unknown, revoked or expired."
        texts[403] = f"The scope of the token is smaller than {route.scope}."
    if edge.guard.hosts is not None:
        texts[421] = "The Host header names a host that this service is not."
    if _takes_min_seq(operation, edge):
        texts[409] = f"The log has not come to the sequence that {MIN_SEQ} names."
    if route.method != "GET":
        texts[403] = " ".join(filter(None, ("A page of another origin asks for a change.", texts.get(403))))
    for field in binder.fields:
        if field.source is Source.PATH:
            texts.setdefault(int(field.spec.otherwise), HTTPStatus(field.spec.otherwise).phrase)
    for status in route.errors:
        texts.setdefault(status, HTTPStatus(status).phrase)
    return {str(status): _error(texts[status]) for status in sorted(texts)}


def _error(text: str) -> dict[str, Any]:
    return {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{_PROBLEM}"}}}}


def _problem(key: str) -> Schema:
    string: Mapping[str, str] = {"type": "string"}
    item = {"type": "object", "properties": {"detail": string, "pointer": string, "parameter": string}, "required": ["detail"]}
    return {
        "type": "object",
        "description": "What went wrong (RFC 9457).",
        "properties": {
            "type": {"type": "string", "description": "about:blank, or urn:problem:<name>."},
            "title": string,
            "status": {"type": "integer"},
            "detail": string,
            key: {"type": "string", "description": "The same as detail."},
            "instance": {"type": "string", "description": "The path that was asked for."},
            "request_id": string,
            "errors": {"type": "array", "items": item, "description": "Every field that is wrong."},
        },
        "required": ["type", "title", "status", "detail", key],
    }


def encoded(operations: Iterable[Operation[Any]], edge: Edge) -> bytes:
    """The document as JSON."""
    return encode(document(operations, edge))
