"""The HTTP edge: typed routes, errors, OpenAPI, event streams, hardening, metrics, server."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from httpkit.application import build_application
    from httpkit.edge import Edge, Reply
    from httpkit.errors import FieldError, HttpkitError
    from httpkit.messages.binding import body_text, decode_cursor, encode_cursor, page_of, parse_body
    from httpkit.messages.encoding import decode_cell, encode, encode_csv, takes_gzip
    from httpkit.messages.fields import (
        JSON,
        UNSET,
        Rule,
        Unset,
        attributes_of,
        flat_problems,
        header,
        member,
        message,
        moment,
        parse_time,
        path,
        payload,
        query,
    )
    from httpkit.monitoring import NOT_KNOWN, gauge, total
    from httpkit.pages import Asset, Pages, file_answer
    from httpkit.problems import (
        INTERNAL_ERROR,
        Busy,
        Forbidden,
        Invalid,
        Malformed,
        NotPermitted,
        PreconditionFailed,
        status_of,
        text_of,
    )
    from httpkit.routes import Answer, Call, Caller, Nothing, Route, Scope
    from httpkit.server.guard import SHARED_CALLER, is_loopback, same_secret
    from httpkit.server.serving import ListenAddress, cancels_when_gone, termination
    from httpkit.sse.hub import Hub
    from httpkit.sse.stream import OF_EVERY_STREAM, CannotResume, Frame, Streams
else:
    __getattr__ = facade(
        __name__,
        {
            "httpkit.application": "build_application",
            "httpkit.edge": "Edge Reply",
            "httpkit.errors": "FieldError HttpkitError",
            "httpkit.messages.binding": "body_text decode_cursor encode_cursor page_of parse_body",
            "httpkit.messages.encoding": "decode_cell encode encode_csv takes_gzip",
            "httpkit.messages.fields": (
                "JSON UNSET Rule Unset attributes_of flat_problems header member message moment parse_time path payload query"
            ),
            "httpkit.monitoring": "NOT_KNOWN gauge total",
            "httpkit.pages": "Asset Pages file_answer",
            "httpkit.problems": (
                "INTERNAL_ERROR Busy Forbidden Invalid Malformed NotPermitted PreconditionFailed status_of text_of"
            ),
            "httpkit.routes": "Answer Call Caller Nothing Route Scope",
            "httpkit.server.guard": "SHARED_CALLER is_loopback same_secret",
            "httpkit.server.serving": "ListenAddress cancels_when_gone termination",
            "httpkit.sse.hub": "Hub",
            "httpkit.sse.stream": "OF_EVERY_STREAM CannotResume Frame Streams",
        },
    )

__all__ = [
    "INTERNAL_ERROR", "JSON", "NOT_KNOWN", "OF_EVERY_STREAM", "SHARED_CALLER", "UNSET", "Answer", "Asset", "Busy", "Call",
    "Caller", "CannotResume", "Edge", "FieldError", "Forbidden", "Frame", "HttpkitError", "Hub", "Invalid", "ListenAddress",
    "Malformed", "NotPermitted", "Nothing", "Pages", "PreconditionFailed", "Reply", "Route", "Rule", "Scope", "Streams",
    "Unset", "attributes_of", "body_text", "build_application", "cancels_when_gone", "decode_cell",
    "decode_cursor", "encode", "encode_csv", "encode_cursor", "file_answer", "flat_problems", "gauge", "header", "is_loopback",
    "member", "message", "moment", "page_of", "parse_body", "parse_time", "path", "payload", "query", "same_secret", "status_of",
    "takes_gzip", "termination", "text_of", "total",
]  # fmt: skip
