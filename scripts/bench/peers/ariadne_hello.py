"""`{ hello }` by Ariadne on uvicorn with uvloop and httptools: python ariadne_hello.py PORT GREETING cached|plain.

Ariadne has hooks for parsing and validating, and no cache; `cached` gives it one, without bounds.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import uvicorn
from ariadne import QueryType, make_executable_schema
from ariadne.asgi import GraphQL
from graphql import DocumentNode, GraphQLError, parse, validate

query = QueryType()


@query.field("hello")
def hello(*_: Any) -> str:
    """The greeting."""
    return sys.argv[2]


schema = make_executable_schema("type Query { hello: String }", query)


@cache
def _parsed(text: str) -> DocumentNode:
    return parse(text)


@cache
def _errors(text: str) -> list[GraphQLError]:
    return validate(schema, _parsed(text))


def parser(_context: Any, data: Any) -> DocumentNode:
    """The document of a text that was met before, or a new one."""
    return _parsed(data["query"])


def validator(_schema: Any, document: DocumentNode, *_: Any, **__: Any) -> list[GraphQLError]:
    """The faults of a document, found once."""
    source = document.loc.source if document.loc else None
    return _errors(source.body) if source else []


cached = {"query_parser": parser, "query_validator": validator} if sys.argv[3] == "cached" else {}
application = GraphQL(schema, **cached)
uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning", http="httptools")
