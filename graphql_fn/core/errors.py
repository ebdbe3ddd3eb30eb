"""The root of the package's errors, and the two errors that clients see."""

from __future__ import annotations

from http import HTTPStatus

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


class PublicError(GraphQLError):
    """An error of a resolver whose text is meant for the client. Any other is masked."""
