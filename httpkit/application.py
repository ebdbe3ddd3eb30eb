"""An aiohttp application made of a route table, probes, metrics, the OpenAPI document and pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import attrs
from aiohttp import web

from httpkit.edge import Edge, EdgePolicy, Handler, Operation, Pipeline, add_headers
from httpkit.messages import openapi
from httpkit.monitoring import Health
from httpkit.pages import Asset, Pages
from httpkit.routes import Route
from httpkit.server.guard import add_cross_origin_headers

S = TypeVar("S")
LIVE = ("/livez", "/health", "/_/health")
"""Paths of the probe of life; function platforms ask the last one."""
READY = ("/readyz", "/_/ready")
METRICS = "/metrics"
OPENAPI = "/api/openapi.json"
_PROBE = EdgePolicy(open=True, capped=False, quiet=True)
_STREAM = EdgePolicy(capped=False)
_OPEN = EdgePolicy(open=True)


class _Table:
    """Handlers by path and method, with their policies."""

    def __init__(self) -> None:
        self._paths: dict[str, dict[str, tuple[Handler, EdgePolicy]]] = {}

    def add(self, method: str, path: str, handler: Handler, policy: EdgePolicy, *, head: bool = True) -> None:
        methods = self._paths.setdefault(path, {})
        if method in methods:
            raise ValueError(f"{method} {path} is in the table twice")
        methods[method] = handler, policy
        if method == "GET" and head:
            methods["HEAD"] = handler, policy

    def install(self, app: web.Application, pipeline: Pipeline, missing: Asset | None) -> None:
        """Register all routes, literal paths before paths with parameters, so that the order of the table does not matter."""
        for path in sorted(self._paths, key=lambda path: [("{" in part, part) for part in path.split("/")]):
            resource = app.router.add_resource(path)
            for method, (handler, policy) in self._paths[path].items():
                resource.add_route(method, pipeline.before(handler, policy, path))
            methods = sorted({*self._paths[path], "OPTIONS"})
            resource.add_route("OPTIONS", pipeline.before(_options(", ".join(methods)), _OPEN, path))
            # A literal path keeps its other methods to itself: a path with parameters that fits it too is not asked.
            resource.add_route("*", pipeline.before(_not_allowed(methods), EdgePolicy(), path))
        wants_page = _wants_page if missing is not None else False
        app.router.add_route(
            "*", r"/{path:(?s:.*)}", pipeline.before(_not_found(missing), EdgePolicy(open=wants_page), "unmatched")
        )


def _wants_page(request: web.Request) -> bool:
    """Whether a browser goes to an address, in contrast to a program that asks for data."""
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("Accept", "")


def _not_found(missing: Asset | None) -> Handler:
    async def not_found(request: web.Request) -> web.Response:
        if missing is None or not _wants_page(request):
            raise web.HTTPNotFound
        return missing.not_found()

    return not_found


def _options(allow: str) -> Handler:
    async def options(_: web.Request) -> web.Response:
        return web.Response(status=HTTPStatus.NO_CONTENT, headers={"Allow": allow})

    return options


def _not_allowed(methods: Sequence[str]) -> Handler:
    async def not_allowed(request: web.Request) -> web.Response:
        raise web.HTTPMethodNotAllowed(request.method, methods)

    return not_allowed


def build_application(
    table: Sequence[Route[S]],
    services: S,
    edge: Edge,
    *,
    health: Health,
    pages: Pages | None = None,
) -> web.Application:
    """The application. `services` reaches the handlers through their Call.

    Each path of the table is also served with a slash at its end. Raises ValueError or TypeError for a
    table that cannot be served or described.
    """
    operations: list[Operation[S]] = [Operation(route, services, edge) for route in table]
    if edge.guard.knows_tokens:
        operations.extend(Operation(route, services, edge) for route in edge.guard.routes(edge.session_path))
    route_table = _Table()
    for operation in operations:
        route = operation.route
        policy = (
            attrs.evolve(_STREAM, scope=route.scope)
            if route.is_stream
            else EdgePolicy(open=route.open, streams=route.streams, scope=route.scope, kept=route.kept)
        )
        for path in (route.path, f"{route.path}/"):
            route_table.add(route.method, path, operation.handle, policy, head=not route.is_stream)
    for path in LIVE:
        route_table.add("GET", path, health.live, _PROBE)
    for path in READY:
        route_table.add("GET", path, health.ready, _PROBE)
    route_table.add("GET", METRICS, edge.metrics.answer, EdgePolicy(capped=False, quiet=True))
    route_table.add("GET", OPENAPI, _document(openapi.encoded(operations, edge)), EdgePolicy())
    for path, asset in pages.by_path.items() if pages is not None else ():
        route_table.add("GET", path, asset.answer, _OPEN)
    app = web.Application(client_max_size=edge.max_body)
    route_table.install(app, Pipeline(edge), pages.missing if pages is not None else None)
    app.on_response_prepare.append(add_headers)
    if edge.guard.origins:
        app.on_response_prepare.append(partial(add_cross_origin_headers, edge.guard.origins))
    return app


def _document(content: bytes) -> Handler:
    async def openapi_document(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type="application/json")

    return openapi_document
