"""The whole route table of the tracker, and its pages."""

from __future__ import annotations

import attrs
from aiohttp import web

from gctd.http import event_log as eventlog
from gctd.http import hooks, repos, workers
from gctd.http.frames import EVENTS
from gctd.http.projects import badges, coverage, exports, functions, gate, history, rescoring, updates
from gctd.http.projects import config as repo_config
from gctd.http.services import Services
from gctd.http.tasks import attempts
from gctd.http.tasks import routes as tasks
from httpkit import Call, Nothing, Pages, Route
from servicekit import projections_route


async def follow_events(request: Nothing, call: Call[Services]) -> web.StreamResponse:  # noqa: ARG001
    """Stream the events of the tracker. `Last-Event-ID` resumes after an event: each event is sent once, in order."""
    return await call.services.follow(call)


TABLE: tuple[Route[Services], ...] = (
    *tasks.ROUTES,
    *attempts.ROUTES,
    *repos.ROUTES,
    *updates.ROUTES,
    *rescoring.ROUTES,
    *history.ROUTES,
    *functions.ROUTES,
    *gate.ROUTES,
    *coverage.ROUTES,
    *exports.ROUTES,
    *badges.ROUTES,
    *repo_config.ROUTES,
    *workers.ROUTES,
    *hooks.ROUTES,
    *eventlog.ROUTES,
    projections_route("/api/projections"),
    Route("GET", "/api/sse", follow_events, summary="Follow the events", tags=("events",), events=EVENTS),
)


def table(*, public_badges: bool) -> tuple[Route[Services], ...]:
    """Return the routes. Public badges need no token."""
    return tuple(attrs.evolve(route, open=True) if public_badges and route in badges.ROUTES else route for route in TABLE)


SCREENS = (
    *("/", "/tasks", "/tasks/{id}", "/workers", "/repos", "/repos/{id}"),
    *("/analyses", "/analyses/{id}", "/analyses/{id}/history", "/analyses/{id}/compare/{pair}"),
    *("/analyses/{id}/functions/{key}", "/log", "/log/{position}", "/projections"),
)
"""Addresses of the dashboard's screens: each answers with the page, which does the rest (`ui/gctd/routes.ts`)."""


def pages() -> Pages:
    """Return the dashboard."""
    return Pages("gctd.http", "dashboard", paths=SCREENS, answers_all=True, built=True)
