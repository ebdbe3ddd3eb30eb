"""The route of scoring stored coverage profiles again."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.http import formats
from gctd.http.bodies import TaskBody
from gctd.http.services import Services
from gctd.http.tasks.routes import scheduled_tasks
from httpkit import Answer, Call, Route, member, message


@message
class Rescore:
    """Selection of the analyses to score again."""

    repo_url: str = member(schema=formats.REPO_URL, example="https://github.com/example/module")
    project: str | None = member(default=None, schema=formats.PROJECT, description="one project; default: all", example=".")
    engine: str | None = member(default=None, schema=formats.ENGINE, description="default: the server's engine", example="native")
    all_history: bool = member(default=False, description="every stored profile, not only the latest of each project")


async def rescore(request: Rescore, call: Call[Services]) -> Answer[Sequence[TaskBody]]:
    """Queue a task for each stored coverage profile that is to be scored again; no tests are run."""
    outcomes = await call.services.rescoring.rescore(
        request.repo_url,
        project=request.project,
        engine=request.engine,
        all_history=request.all_history,
        context=call.context,
    )
    return scheduled_tasks(outcomes)


ROUTES = (
    Route(
        "POST",
        "/api/repos/rescore",
        rescore,
        summary="Score stored profiles again",
        tags=("repos",),
        status=202,
        errors=(404, 409),
        idempotent=True,
    ),
)
