"""Routes of repositories and of their analyses."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.domain.errors import NotFound
from gctd.domain.remote.urls import repo_id
from gctd.http import formats
from gctd.http.bodies import AnalysisBody, RepoBody
from gctd.http.projects.points import POINT, point
from gctd.http.services import BROKER_TIME_LIMIT, Services
from gctd.http.tasks.results import full_analysis
from gctd.http.tasks.routes import PAGE
from gctd.readmodel.views import RepoView
from httpkit import Answer, Call, Route, decode_cursor, member, message, page_of, path, query
from servicekit import answer


@message
class Register:
    """The repository to register."""

    repo_url: str = member(schema=formats.REPO_URL, example="https://github.com/example/module")
    refresh: bool = query(default=False, description="look for the projects of a known repository again")


@message
class RepoByUrl:
    """Names a repository by its URL."""

    url: str = query(schema=formats.REPO_URL, example="https://github.com/example/module")


@message
class ListRepos:
    """A page of the list of repositories."""

    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="cursor from the `Link` of the previous page")


@message
class ListAnalyses:
    """A page of the list of analyses."""

    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="cursor from the `Link` of the previous page")


@message
class OneAnalysis:
    """Names an analysis, and limits its content."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    at: str | None = query(default=None, schema=formats.REF, description=f"{POINT}; the latest")
    entries: int | None = query(default=None, ge=0, le=1_000_000, description="limit of the functions: measured, worst first")


async def register(request: Register, call: Call[Services]) -> Answer[RepoBody]:
    """Register a repository; a worker searches for its Go projects. For a known repository, return its current state."""
    await call.services.removals.finish(request.repo_url, call.context)
    outcome = await call.services.tracker.register(request.repo_url, refresh=request.refresh, context=call.context)
    return answer(outcome, RepoBody.of(RepoView.of_state(outcome.state, outcome.sequence)))


async def repo_status(request: RepoByUrl, call: Call[Services]) -> RepoBody:
    """A repository, whatever its state."""
    url = call.services.tracker.parse_url(request.url, "url")
    repo = await call.services.queries.repo(repo_id(url.canonical))
    if repo is None:
        raise NotFound(f"{request.url} is not registered")
    return RepoBody.of(repo)


async def remove_repo(request: RepoByUrl, call: Call[Services]) -> Answer[None]:
    """Remove a repository with its tasks, analyses and verdicts. Unfinished tasks are cancelled, and the event log keeps all."""
    return Answer(None, sequence=await call.services.removals.remove(request.url, call.context))


async def list_repos(request: ListRepos, call: Call[Services]) -> Answer[Sequence[RepoBody]]:
    """All registered repositories, whatever their state, by URL."""
    after = decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else ("", "")
    found = await call.services.queries.repos_by_url(after=after, limit=request.limit + 1)
    page, more = page_of(found, request.limit, lambda repo: (repo.url, repo.id))
    return Answer([RepoBody.of(repo) for repo in page], cursor=more)


async def list_analyses(request: ListAnalyses, call: Call[Services]) -> Answer[Sequence[AnalysisBody]]:
    """The latest analysis of each project of each repository, without the functions."""
    found = await call.services.queries.latest_analyses(
        after=decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else None, limit=request.limit + 1
    )
    page, more = page_of(found, request.limit, lambda analysis: (analysis.repo_url, analysis.project))
    return Answer([AnalysisBody.of(analysis) for analysis in page], cursor=more)


async def get_analysis(request: OneAnalysis, call: Call[Services]) -> Answer[AnalysisBody]:
    """The latest analysis of a project, or another one, by the id that all its analyses have."""
    async with call.services.snapshots.moment() as sequence:
        analysis = await point(request.id, "at", request.at, call)
    return Answer(await full_analysis(analysis, call, entries=request.entries), sequence=sequence)


ROUTES = (
    Route("POST", "/api/repos", register, summary="Register a repository", tags=("repos",), status=202),
    Route("GET", "/api/repos/status", repo_status, summary="State of a repository", tags=("repos",), errors=(404,)),
    Route("GET", "/api/repos/registered", list_repos, summary="List repositories", tags=("repos",)),
    Route("DELETE", "/api/repos/registered", remove_repo, summary="Remove a repository", tags=("repos",), errors=(404,)),
    Route("GET", "/api/repos", list_analyses, summary="Latest analyses", tags=("repos",)),
    Route(
        "GET",
        "/api/repos/{id}",
        get_analysis,
        summary="Look at an analysis",
        tags=("repos",),
        errors=(404,),
        time_limit=BROKER_TIME_LIMIT,
    ),
)
