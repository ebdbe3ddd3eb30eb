"""Routes of one function: its figures, its source with covered and uncovered code, the tests it needs, and its history."""

from __future__ import annotations

from gctd.control.function_search import MOST_PROJECTS
from gctd.control.functions import MOST_BEFORE, FunctionDetail, FunctionHistory
from gctd.http import formats
from gctd.http.projects.function_bodies import FoundFunctionsBody, FunctionBody, FunctionHistoryBody
from gctd.http.projects.points import POINT, point
from gctd.http.services import BROKER_TIME_LIMIT, Services
from httpkit import Answer, Call, Route, message, path, query

_KEY = "directory, receiver's type and name, with colons for slashes: `internal:fsm:Machine.Next`"
AROUND = 10
"""Lines before and after a function."""
FOUND = 30
"""Functions that a search gives."""
POINTS = 50
"""Analyses of a history."""


@message
class OneFunction:
    """Names a function of an analysis."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    key: str = path(schema=formats.FUNCTION, max_length=4096, description=_KEY, example="Add")
    at: str | None = query(default=None, schema=formats.REF, description=f"{POINT}; the latest")
    whole: bool = query(default=False, description="the source of the whole file")
    around: int = query(default=AROUND, ge=0, le=1000, description="lines of source before and after the function")


@message
class HistoryOfFunction:
    """Names a function of an analysis, and the length of its history."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    key: str = path(schema=formats.FUNCTION, max_length=4096, description=_KEY, example="Add")
    at: str | None = query(default=None, schema=formats.REF, description=f"{POINT}; the latest")
    limit: int = query(default=POINTS, ge=1, le=200, description="limit of the analyses, newest first")


@message
class SearchFunctions:
    """Words to look for, and the length of the answer."""

    search: str = query(
        min_length=1,
        max_length=200,
        example="Machine.Next",
        description="words of the name, the file or the project, in any case",
    )
    limit: int = query(default=FOUND, ge=1, le=100, description="limit of the functions, the best first")


async def one_function(request: OneFunction, call: Call[Services]) -> Answer[FunctionBody]:
    """Return a function: its figures, its blocks, its source if it is kept, and the tests that bring it to the threshold."""
    async with call.services.snapshots.moment() as sequence:
        analysis = await point(request.id, "at", request.at, call)
        repo = await call.services.queries.repo(analysis.repo_id)
    around = None if request.whole else request.around
    looked: FunctionDetail = await call.services.functions.look(analysis, repo, request.key, around=around)
    source = call.services.links.source(analysis.repo_url, analysis.commit_sha, analysis.project)
    return Answer(FunctionBody.of(looked, source), sequence=sequence)


async def function_history(request: HistoryOfFunction, call: Call[Services]) -> Answer[FunctionHistoryBody]:
    """Return the values of a function in the analyses of its branch, newest first, and the last change of its code."""
    queries = call.services.queries
    async with call.services.snapshots.moment() as sequence:
        analysis = await point(request.id, "at", request.at, call)
        repo = await queries.repo(analysis.repo_id)
        before = await queries.history(
            analysis.analysis_id, ref=analysis.ref, before=(analysis.measured, analysis.sequence), limit=MOST_BEFORE + 1
        )
    history: FunctionHistory = await call.services.functions.history(analysis, repo, before, request.key, limit=request.limit)
    return Answer(FunctionHistoryBody.of(history), sequence=sequence)


async def search_functions(request: SearchFunctions, call: Call[Services]) -> Answer[FoundFunctionsBody]:
    """Find functions in the latest analyses of all projects: the same name first, then the riskiest.

    It begins with no report after a second.
    """
    async with call.services.snapshots.moment() as sequence:
        analyses = await call.services.queries.latest_analyses(limit=MOST_PROJECTS + 1)
    found = await call.services.search.find(request.search, analyses, limit=request.limit)
    return Answer(FoundFunctionsBody.of(found), sequence=sequence)


ROUTES = (
    Route("GET", "/api/functions", search_functions, summary="Find functions", tags=("repos",), time_limit=BROKER_TIME_LIMIT),
    Route(
        "GET",
        "/api/repos/{id}/functions/{key}",
        one_function,
        summary="Look at a function",
        tags=("repos",),
        errors=(404,),
        time_limit=BROKER_TIME_LIMIT,
    ),
    Route(
        "GET",
        "/api/repos/{id}/functions/{key}/history",
        function_history,
        summary="History of a function",
        tags=("repos",),
        errors=(404,),
        time_limit=BROKER_TIME_LIMIT,
    ),
)
