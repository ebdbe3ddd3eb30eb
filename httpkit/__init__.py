"""The HTTP edge: typed routes, errors, OpenAPI, event streams, hardening, metrics, server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog.facade import facade

if TYPE_CHECKING:
    from httpkit.application import build_application
    from httpkit.edge import Edge
    from httpkit.errors import FieldError, HttpkitError
    from httpkit.messages.encoding import encode
    from httpkit.messages.fields import UNSET, Unset, header, member, message, path, payload, query
    from httpkit.messages.paging import decode_cursor, encode_cursor, page_of
    from httpkit.ops.health import Health
    from httpkit.problems import Invalid
    from httpkit.routes import Answer, Call, Nothing, Route
    from httpkit.server.guard import Guard
    from httpkit.server.serving import ListenAddress, ServerLimits, serving, termination
    from httpkit.sse.frames import Frame
    from httpkit.static.pages import Pages

__all__ = [
    "UNSET",
    "Answer",
    "Call",
    "Edge",
    "FieldError",
    "Frame",
    "Guard",
    "Health",
    "HttpkitError",
    "Invalid",
    "ListenAddress",
    "Nothing",
    "Pages",
    "Route",
    "ServerLimits",
    "Unset",
    "build_application",
    "decode_cursor",
    "encode",
    "encode_cursor",
    "header",
    "member",
    "message",
    "page_of",
    "path",
    "payload",
    "query",
    "serving",
    "termination",
]

__getattr__ = facade(
    __name__,
    {
        "httpkit.routes": "Answer Call Nothing Route",
        "httpkit.messages.fields": "UNSET Unset header member message path payload query",
        "httpkit.messages.encoding": "encode",
        "httpkit.messages.paging": "decode_cursor encode_cursor page_of",
        "httpkit.errors": "FieldError HttpkitError",
        "httpkit.problems": "Invalid",
        "httpkit.edge": "Edge",
        "httpkit.application": "build_application",
        "httpkit.ops.health": "Health",
        "httpkit.server.guard": "Guard",
        "httpkit.server.serving": "ListenAddress ServerLimits serving termination",
        "httpkit.sse.frames": "Frame",
        "httpkit.static.pages": "Pages",
    },
)
