"""The OpenAPI 3.1 document of a route table. It is wholly generated, so that it cannot drift from the served routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from httpkit.edge import Edge
from httpkit.messages import csv_form
from httpkit.messages.binding import Binder, BoundField
from httpkit.messages.encoding import encode
from httpkit.messages.fields import Source
from httpkit.messages.schemas import Schema, Schemas, description_of
from httpkit.operation import KEY_HEADER, KEY_PATTERN, MIN_SEQ, Operation
from httpkit.problems import MEDIA_TYPE
from httpkit.server.callers import Scope
from httpkit.server.reply import SEQUENCE_HEADER

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
    found: dict[str, Any] = {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}
    if edge.guard.knows_tokens:
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": edge.guard.cookie},
        }
        found["security"] = _security(edge, Scope.READ)
    return found


def _security(edge: Edge, scope: Scope) -> list[dict[str, list[str]]]:
    """The tokens that an operation takes, with their scope unless any will do; `{}` if it also answers without one."""
    roles = [] if scope is Scope.READ else [scope.value]
    nothing: list[dict[str, list[str]]] = [] if edge.guard.required else [{}]
    return [{"token": roles}, {"session": roles}, *nothing]


def _operation(operation: Operation[Any], edge: Edge, schemas: Schemas) -> dict[str, Any]:
    route, binder = operation.route, operation.binder
    found: dict[str, Any] = {"operationId": route.operation_id, "summary": route.summary}
    if (text := route.description or description_of(route.handler)) is not None:
        found["description"] = text
    if route.tags:
        found["tags"] = list(route.tags)
    if route.deprecated:
        found["deprecated"] = True
    if edge.guard.knows_tokens and (route.open is True or route.scope is not Scope.READ):
        found["security"] = [] if route.open is True else _security(edge, route.scope)
    if parameters := _parameters(operation, edge, schemas):
        found["parameters"] = parameters
    if binder.takes_body:
        found["requestBody"] = _body(binder, schemas, closed=route.unknown == "refuse")
    found["responses"] = _success(operation, edge, schemas) | _errors(operation, edge)
    return found


def _parameters(operation: Operation[Any], edge: Edge, schemas: Schemas) -> list[dict[str, Any]]:
    route = operation.route
    found = [
        _parameter(field, schemas)
        for field in operation.binder.fields
        if field.source in (Source.PATH, Source.QUERY, Source.HEADER)
    ]
    if _takes_min_seq(operation, edge):
        text = "Wait until the answer is true for this sequence of the log, as an earlier answer's Event-Sequence gave it."
        found.append(_given(MIN_SEQ, "query", {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}, text))
    if route.idempotent:
        text = "A request that is repeated with the same key takes effect once. With another request the key is refused."
        found.append(_given(KEY_HEADER, "header", {"type": "string", "pattern": f"^{KEY_PATTERN}$"}, text))
    if route.is_stream:
        text = "Go on after this event: each later one is sent once, in order."
        own = {parameter["name"] for parameter in found}
        resuming = [
            _given("Last-Event-ID", "header", _LAST_EVENT_ID, text),
            _given("last_event_id", "query", _LAST_EVENT_ID, f"{text} For clients that cannot set the header."),
        ]
        found.extend(parameter for parameter in resuming if parameter["name"] not in own)
    return found


def _takes_min_seq(operation: Operation[Any], edge: Edge) -> bool:
    return operation.route.method == "GET" and edge.wait_for is not None and not operation.route.is_stream


def _given(name: str, where: str, schema: Schema, text: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": False, "schema": schema, "description": text}


def _parameter(field: BoundField, schemas: Schemas) -> dict[str, Any]:
    schema = schemas.field(field.attribute, "request")
    found: dict[str, Any] = {"name": field.name, "in": field.source.value, "required": field.required}
    if (text := schema.pop("description", None)) is not None:
        found["description"] = text
    found["schema"] = _without_null(schema)
    if field.spec.empty:
        found["allowEmptyValue"] = True
        found["schema"] = {"anyOf": [found["schema"], {"const": ""}]}
    return found


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


def _body(binder: Binder[Any], schemas: Schemas, *, closed: bool) -> dict[str, Any]:
    if binder.payload is not None:
        media = binder.media or ("application/json",)
        schema = schemas.field(binder.payload.attribute, "request")
        text = {"type": "string"}
        content = {name: {"schema": schema if _is_json(name) or schema.get("type") == "string" else text} for name in media}
        return {"required": binder.payload.required, "content": content}
    schema = schemas.object(binder.cls, "request", closed=closed)
    required = any(field.required for field in binder.members)
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _is_json(media: str) -> bool:
    return media == "application/json" or media.endswith("+json")


def _success(operation: Operation[Any], edge: Edge, schemas: Schemas) -> dict[str, Any]:
    route = operation.route
    found: dict[str, Any] = {}
    for status in (route.status, *route.also):
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if edge.position is not None and not (route.is_stream or route.produces):
            answer["headers"] = {
                SEQUENCE_HEADER: {"description": "The sequence of the log for which this is true.", "schema": {"type": "integer"}}
            }
        if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED) and (content := _content(operation, edge, schemas)):
            answer["content"] = content
        found[str(status)] = answer
    return found


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
        content[csv_form.MEDIA_TYPE] = {
            "schema": {"type": "string", "description": "The same as lines, the first with the names."}
        }
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
