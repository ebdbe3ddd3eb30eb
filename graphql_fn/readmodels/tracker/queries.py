"""The fields of `Query` of the function `tracker`, and the context of its requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
from graphql import GraphQLResolveInfo

from gctd.domain.analysis import analysis_id
from gctd.domain.repo.project import Project
from gctd.readmodel import graph
from gctd.readmodel.graph import TrackerGraph
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.reports import Reports
from gctd.readmodel.views import AnalysisView, RepoView, TaskView, WorkerView
from graphql_fn.core.errors import Code, PublicError
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.readmodels.asking import Asking
from graphql_fn.readmodels.binding import Resolver, found_by
from graphql_fn.readmodels.connections import PageConnection, connection
from graphql_fn.readmodels.nodes import projections, split_id
from graphql_fn.readmodels.paging import ListOrder, Time, chosen, size_of
from graphql_fn.readmodels.tracker.differences import diff
from projections import ArgumentRefused, ProjectionError, SortOrder
from servicekit import ReadReplica

REPO_ORDERS = {
    "URL": ListOrder(graph.REPOS, ("url", "id"), (str, str)),
    "UPDATED_AT": ListOrder(graph.REPOS_BY_CHANGE, ("updated_at", "id"), (Time, str), "UPDATED_AT"),
}
TASK_ORDERS = {
    "CREATED_AT": ListOrder(graph.TASKS, ("created_at", "id"), (Time, str)),
    "UPDATED_AT": ListOrder(graph.TASKS_BY_CHANGE, ("updated_at", "id"), (Time, str), "UPDATED_AT"),
}
LATEST_ORDER = ListOrder(graph.LATEST_ANALYSES, ("repo_url", "project"), (str, str))
PROJECT_ORDER = ListOrder(SortOrder(()), ("is_inside", "project.name"), (bool, str))
"""The order of the projects of a repository: the root first, then by name."""
HISTORY_ORDER = ListOrder(graph.HISTORY, ("measured", "sequence"), (int, int))
EVENT_PAGE = 100
"""Events of a page without a size in the query."""


class TrackerAsking(Asking[TrackerGraph]):
    """The context of a request, with the reports of analyses (None: there is no broker to get them from)."""

    def __init__(self, replica: ReadReplica, reports: Reports | None, request: GraphQLRequest) -> None:
        super().__init__(replica, TrackerGraph, request)
        self.replica = replica
        self._reports = reports

    @property
    def reports(self) -> Reports:
        """The stored reports, profiles and logs. Raises PublicError without a broker."""
        if self._reports is None:
            raise PublicError("stored reports, profiles and logs are with the broker: nats_url is not set", code=Code.UNAVAILABLE)
        return self._reports


Info: TypeAlias = "GraphQLResolveInfo[TrackerAsking]"


@attrs.frozen
class ProjectOf:
    """A project, and the repository that it is in."""

    repo: RepoView
    project: Project

    @property
    def is_inside(self) -> bool:
        """Whether it is in a folder of the repository, and not the root."""
        return self.project.name != "."

    @property
    def analysis_id(self) -> str:
        """The id of its analyses."""
        return analysis_id(self.repo.id, self.project.name)


async def _node(_: Any, info: Info, id: str) -> Any:  # noqa: A002 - the argument's name in the schema
    kind = id.partition(":")[0]
    if kind == "Project":
        key = split_id(id, parts=2)
        return None if key is None else _project_of(await info.context.load(TrackerGraph.repos_by_id, key[0]), key[1])
    if kind in _BY_KEY and (key := split_id(id)) is not None:
        return await info.context.load(_BY_KEY[kind], key[0])
    return await info.context.load(TrackerGraph.tasks_by_id if id.startswith("task-") else TrackerGraph.repos_by_id, id)


_BY_KEY: Mapping[str, Callable[..., Any]] = {
    "Analysis": TrackerGraph.analyses_of_tasks,
    "Verdict": TrackerGraph.verdicts_by_id,
    "Worker": TrackerGraph.workers_by_id,
}


def _project_of(repo: RepoView | None, name: str) -> ProjectOf | None:
    found = [] if repo is None else [ProjectOf(repo, one) for one in repo.projects if one.name == name]
    return found[0] if found else None


async def _repo(_: Any, info: Info, id: str | None = None, url: str | None = None) -> RepoView | None:  # noqa: A002 - the schema's
    if (id is None) == (url is None):
        raise PublicError("give either id or url")
    if url is not None:
        return await (await info.context.queries()).repo_by_url(url)
    found: RepoView | None = await info.context.load(TrackerGraph.repos_by_id, id)
    return found


async def _repos(
    _: Any,
    info: Info,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the argument's name in the schema
    order_by: Mapping[str, Any] | None = None,
    **page: Any,
) -> PageConnection[RepoView]:
    order, queries = chosen(REPO_ORDERS, order_by), await info.context.queries()
    wanted, part = _status(filter), order.part(**page)
    found = await queries.repos(part, order.columns, status=wanted)
    return connection(found, part, order, lambda: queries.count_repos(status=wanted))


def _status(given: Mapping[str, Any] | None) -> str | None:
    """The status of the tables for the state in a filter."""
    state = (given or {}).get("state")
    return None if state is None else str(state).lower()


async def _tasks(
    _: Any,
    info: Info,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the argument's name in the schema
    order_by: Mapping[str, Any] | None = None,
    **page: Any,
) -> PageConnection[TaskView]:
    given = filter or {}
    conditions = {
        "status": _status(given),
        "repo": given.get("repo"),
        "project": given.get("project"),
        "all_": bool(given.get("seen")),
    }
    order, queries = chosen(TASK_ORDERS, order_by), await info.context.queries()
    part = order.part(**page)
    found = await queries.tasks(part, order.columns, **conditions)
    return connection(found, part, order, lambda: queries.count_tasks(**conditions))


async def _analyses(_: Any, info: Info, repo: str | None = None, **page: Any) -> PageConnection[AnalysisView]:
    queries, part = await info.context.queries(), LATEST_ORDER.part(**page)
    found = await queries.latest_analyses(part, repo=repo)
    return connection(found, part, LATEST_ORDER, lambda: queries.count_latest_analyses(repo=repo))


async def history(_: Any, info: Info, id: str, **page: Any) -> PageConnection[AnalysisView]:  # noqa: A002 - the schema's
    context, part = info.context, HISTORY_ORDER.part(**page)
    found = await context.load(TrackerGraph.history_of, id, part)
    return connection(found, part, HISTORY_ORDER, lambda: context.count(TrackerGraph.count_history_of, id))


async def _diff(_: Any, info: Info, to: str, threshold: float | None = None, **given: str) -> Any:
    context = info.context
    older = await context.load(TrackerGraph.analyses_of_tasks, given["from"])
    newer = await context.load(TrackerGraph.analyses_of_tasks, to)
    if older is None or newer is None:
        raise PublicError(f"there is no analysis of {given['from'] if older is None else to}")
    return await public(diff(context.reports, older, newer, threshold))


async def public(work: Any) -> Any:
    """The result of reading stored bodies or the log. Raises PublicError if they cannot be read."""
    try:
        return await work
    except ProjectionError as error:
        raise PublicError(str(error), code=Code.INPUT if isinstance(error, ArgumentRefused) else Code.UNAVAILABLE) from error


async def _workers(_: Any, info: Info) -> Sequence[WorkerView]:
    return await TrackerQueries(await info.context.database()).workers()


@attrs.frozen
class _EventPage:
    events: Sequence[Any]
    next: int | None
    end: int


async def _events(
    _: Any,
    info: Info,
    direction: str,
    first: int | None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the argument's name in the schema
    after: int | None = None,
) -> _EventPage:
    limit = size_of(first, default=EVENT_PAGE, least=1)
    if after is not None and not (type(after) is int and 0 <= after < 2**53):
        raise PublicError("after must be a sequence of the log")
    newest, given = direction == "DESC", filter or {}
    bounds = {} if after is None else ({"last": after} if newest else {"first": after})
    category = given.get("category")
    page = await public(
        info.context.replica.search(
            given.get("aggregate"),
            category=None if category is None else f"gctd.{category}",
            types=frozenset(given.get("types") or ()),
            text=given.get("text") or "",
            newest=newest,
            limit=limit,
            **bounds,
        )
    )
    return _EventPage(page.records, page.next, page.end)


QUERIES: dict[str, Resolver] = {
    "Query.node": _node,
    "Query.repo": _repo,
    "Query.repos": _repos,
    "Query.task": found_by(TrackerGraph.tasks_by_id),
    "Query.tasks": _tasks,
    "Query.analysis": found_by(TrackerGraph.analyses_of_tasks),
    "Query.analyses": _analyses,
    "Query.history": history,
    "Query.diff": _diff,
    "Query.verdict": found_by(TrackerGraph.verdicts_by_id),
    "Query.workers": _workers,
    "Query.projections": projections,
    "Query.events": _events,
}
"""The fields of `Query`."""
