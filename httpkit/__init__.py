"""The HTTP edge: typed routes, errors, OpenAPI, event streams, hardening, metrics, server."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from httpkit.application import build_application
    from httpkit.edge import Edge
    from httpkit.errors import FieldError, HttpkitError
    from httpkit.messages.body import body_text, parse_body
    from httpkit.messages.csv_form import decode_cell, encode_csv
    from httpkit.messages.decoding import JSON, attributes_of, flat_problems
    from httpkit.messages.encoding import encode, takes_gzip
    from httpkit.messages.fields import UNSET, Rule, Unset, header, member, message, moment, parse_time, path, payload, query
    from httpkit.messages.paging import decode_cursor, encode_cursor, page_of
    from httpkit.ops.metrics import NOT_KNOWN, gauge, total
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
    from httpkit.routes import Answer, Call, Nothing, Route
    from httpkit.server.callers import Caller, Scope
    from httpkit.server.guard import SHARED_CALLER, is_loopback, same_secret
    from httpkit.server.protocol import cancels_when_gone
    from httpkit.server.reply import Reply, TimeoutPool
    from httpkit.server.serving import ListenAddress, termination
    from httpkit.sse.frames import Frame
    from httpkit.sse.hub import Hub
    from httpkit.sse.stream import OF_EVERY_STREAM, CannotResume, Streams
    from httpkit.static.pages import Asset, Pages, file_answer
else:
    __getattr__ = facade(
        __name__,
        {
            "httpkit.application": "build_application",
            "httpkit.edge": "Edge",
            "httpkit.errors": "FieldError HttpkitError",
            "httpkit.messages.body": "body_text parse_body",
            "httpkit.messages.csv_form": "decode_cell encode_csv",
            "httpkit.messages.decoding": "JSON attributes_of flat_problems",
            "httpkit.messages.encoding": "encode takes_gzip",
            "httpkit.messages.fields": "UNSET Rule Unset header member message moment parse_time path payload query",
            "httpkit.messages.paging": "decode_cursor encode_cursor page_of",
            "httpkit.ops.metrics": "NOT_KNOWN gauge total",
            "httpkit.problems": (
                "INTERNAL_ERROR Busy Forbidden Invalid Malformed NotPermitted PreconditionFailed status_of text_of"
            ),
            "httpkit.routes": "Answer Call Nothing Route",
            "httpkit.server.callers": "Caller Scope",
            "httpkit.server.guard": "SHARED_CALLER is_loopback same_secret",
            "httpkit.server.protocol": "cancels_when_gone",
            "httpkit.server.reply": "Reply TimeoutPool",
            "httpkit.server.serving": "ListenAddress termination",
            "httpkit.sse.frames": "Frame",
            "httpkit.sse.hub": "Hub",
            "httpkit.sse.stream": "OF_EVERY_STREAM CannotResume Streams",
            "httpkit.static.pages": "Asset Pages file_answer",
        },
    )

__all__ = [
    "INTERNAL_ERROR", "JSON", "NOT_KNOWN", "OF_EVERY_STREAM", "SHARED_CALLER", "UNSET", "Answer", "Asset", "Busy", "Call",
    "Caller", "CannotResume", "Edge", "FieldError", "Forbidden", "Frame", "HttpkitError", "Hub", "Invalid", "ListenAddress",
    "Malformed", "NotPermitted", "Nothing", "Pages", "PreconditionFailed", "Reply", "Route", "Rule", "Scope", "Streams",
    "TimeoutPool", "Unset", "attributes_of", "body_text", "build_application", "cancels_when_gone", "decode_cell",
    "decode_cursor", "encode", "encode_csv", "encode_cursor", "file_answer", "flat_problems", "gauge", "header", "is_loopback",
    "member", "message", "moment", "page_of", "parse_body", "parse_time", "path", "payload", "query", "same_secret", "status_of",
    "takes_gzip", "termination", "text_of", "total",
]  # fmt: skip
