"""`{ hello }` by Strawberry on aiohttp and uvloop, documents cached: python strawberry_hello.py PORT GREETING."""

from __future__ import annotations

import sys

import strawberry
import uvloop
from aiohttp import web
from strawberry.aiohttp.views import GraphQLView
from strawberry.extensions import ParserCache, ValidationCache


@strawberry.type
class Query:
    """One field."""

    @strawberry.field
    def hello(self) -> str:
        """The greeting."""
        return sys.argv[2]


uvloop.install()
app = web.Application()
schema = strawberry.Schema(Query, extensions=[ParserCache, ValidationCache])
app.router.add_post("/function/graphql", GraphQLView(schema=schema, graphql_ide=None))
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
