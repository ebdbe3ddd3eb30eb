"""The whole route table of the tracker, and its page."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gctd.http import repos, tasks, workers
from gctd.http.bodies import RepoBody, TaskBody
from gctd.http.services import Services
from httpkit.fields import member, message
from httpkit.pages import Pages
from httpkit.routes import Call, Nothing, Route


@message
class StageBody:
    """A running attempt entered a stage."""

    id: str = member(description="the task")
    attempt: int = member()
    stage: str = member(description="clone, modules, test, analyse or store")
    at: str = member(description="RFC 3339, UTC")


async def follow_events(request: Nothing, call: Call[Services]) -> web.StreamResponse:  # noqa: ARG001
    """What happens, as it happens. `Last-Event-ID` resumes after an event: each one once, in order."""
    return await call.services.hub.stream(call.http)


_EVENTS: dict[str, Any] = {"task": TaskBody, "stage": StageBody, "repo": RepoBody, "worker": dict[str, Any]}

TABLE: tuple[Route[Services], ...] = (
    *tasks.ROUTES,
    *repos.ROUTES,
    *workers.ROUTES,
    Route("GET", "/api/sse", follow_events, summary="Follow the events", tags=("events",), events=_EVENTS),
)


def pages() -> Pages:
    """The page at `/` and its assets."""
    return Pages("gctd.http", "page", prefix="/static/")
