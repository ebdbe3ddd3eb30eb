"""The root of the package's errors, and the two errors that clients see."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from graphql import GraphQLError


class GraphqlFnError(Exception):
    """Root of the package's errors: `status` of the answer, `str(error)` for a user."""

    status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR


class BadRequest(GraphqlFnError):
    """The input cannot be read as a GraphQL request."""

    status = HTTPStatus.BAD_REQUEST


class NotAcceptable(GraphqlFnError):
    """The client accepts no media type of results."""

    status = HTTPStatus.NOT_ACCEPTABLE


class MethodNotAllowed(GraphqlFnError):
    """The method is not one that queries come by."""

    status = HTTPStatus.METHOD_NOT_ALLOWED


class Code:
    """The values of `extensions.code` of errors."""

    SYNTAX = "GRAPHQL_PARSE_FAILED"
    VALIDATION = "GRAPHQL_VALIDATION_FAILED"
    INPUT = "BAD_USER_INPUT"
    REQUEST = "BAD_REQUEST"
    UNAVAILABLE = "UNAVAILABLE"
    INTERNAL = "INTERNAL_SERVER_ERROR"


def masked(**more: Any) -> dict[str, Any]:
    """Return the entry of an error whose own text must not reach clients. `more` are extensions."""
    return {"message": "internal server error", "extensions": {"code": Code.INTERNAL, **more}}


class PublicError(GraphQLError):
    """An error of a resolver whose text is meant for the client. Any other is masked. `code` is for programs."""

    def __init__(self, message: str, *, code: str = Code.INPUT) -> None:
        super().__init__(message, extensions={"code": code})


def coded(error: GraphQLError, code: str) -> dict[str, Any]:
    """Return the entry of an error, with this code unless it has one."""
    found: dict[str, Any] = dict(error.formatted)
    found["extensions"] = {"code": code, **(found.get("extensions") or {})}
    return found
