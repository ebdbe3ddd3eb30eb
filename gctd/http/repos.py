"""Routes of repositories and of their analyses (specification, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.domain.errors import NotFound
from gctd.domain.urls import repo_id
from gctd.http import formats
from gctd.http.bodies import AnalysisBody, RepoBody
from gctd.http.services import Services
from gctd.http.tasks.routes import PAGE, full_analysis
from gctd.readmodel.views import RepoView
from httpkit.messages.fields import member, message, path, query
from httpkit.messages.paging import decode_cursor, encode_cursor
from httpkit.routes import Answer, Call, Route
from servicekit.command_context import context


@message
class Register:
    """Which repository to register."""

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
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="goes on after the page before")


@message
class ListAnalyses:
    """A page of the list of analyses."""

    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=formats.CURSOR, description="goes on after the page before")


@message
class OneAnalysis:
    """Names an analysis, and how much of it is wanted."""

    id: str = path(pattern="^[0-9a-f]{8,64}$", max_length=64)
    entries: int | None = query(default=None, ge=0, le=1_000_000, description="at most so many functions, worst first")


async def register(request: Register, call: Call[Services]) -> Answer[RepoBody]:
    """Make a repository known; a worker looks for its Go projects. A known one is answered as it is."""
    outcome = await call.services.tracker.register(request.repo_url, refresh=request.refresh, context=context(call))
    sequence = await call.services.side.wait_visible(outcome.sequence)
    return Answer(RepoBody.of(RepoView.of_state(outcome.state, outcome.sequence)), sequence=sequence)


async def repo_status(request: RepoByUrl, call: Call[Services]) -> RepoBody:
    """A repository, whatever its state."""
    url = call.services.tracker.parse_url(request.url, "url")
    repo = await call.services.queries.repo(repo_id(url.canonical))
    if repo is None:
        raise NotFound(f"{request.url} is not registered")
    return RepoBody.of(repo)


async def list_repos(request: ListRepos, call: Call[Services]) -> Answer[Sequence[RepoBody]]:
    """All registered repositories, whatever their state, by URL."""
    after = decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else ("", "")
    found = await call.services.queries.repos_by_url(after=after, limit=request.limit + 1)
    page = found[: request.limit]
    more = encode_cursor((page[-1].url, page[-1].id)) if len(found) > len(page) else None
    return Answer([RepoBody.of(repo) for repo in page], cursor=more)


async def list_analyses(request: ListAnalyses, call: Call[Services]) -> Answer[Sequence[AnalysisBody]]:
    """The latest analysis of each project of each repository, without the functions."""
    found = await call.services.queries.latest_analyses(
        after=decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else None, limit=request.limit + 1
    )
    page = found[: request.limit]
    more = encode_cursor((page[-1].repo_url, page[-1].project)) if len(found) > len(page) else None
    return Answer([AnalysisBody.of(analysis) for analysis in page], cursor=more)


async def get_analysis(request: OneAnalysis, call: Call[Services]) -> AnalysisBody:
    """The latest analysis of a project, by the id that all its analyses have."""
    analysis = await call.services.queries.analysis(request.id)
    if analysis is None:
        raise NotFound(f"there is no analysis {request.id}")
    return await full_analysis(analysis, call, entries=request.entries)


ROUTES = (
    Route("POST", "/api/repos", register, summary="Register a repository", tags=("repos",), status=202),
    Route("GET", "/api/repos/status", repo_status, summary="State of a repository", tags=("repos",), errors=(404,)),
    Route("GET", "/api/repos/registered", list_repos, summary="List repositories", tags=("repos",)),
    Route("GET", "/api/repos", list_analyses, summary="Latest analyses", tags=("repos",)),
    Route("GET", "/api/repos/{id}", get_analysis, summary="Look at an analysis", tags=("repos",), errors=(404,)),
)
