"""The fields of the objects of the function `tracker`: repositories, projects, tasks, analyses, verdicts, workers, events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from gctd.domain.repo.config import ROOT, ProjectConfig
from gctd.readmodel.attempts import AttemptView, attempts_of
from gctd.readmodel.graph import TrackerGraph
from gctd.readmodel.reports import FunctionView
from gctd.readmodel.views import AnalysisView, RepoView, TaskView, VerdictView, WorkerView
from graphql_fn.core.errors import PublicError
from graphql_fn.core.limits import PAGE
from graphql_fn.core.running.planning import SourceResolver
from graphql_fn.readmodels.asking import sizes_of
from graphql_fn.readmodels.binding import Resolver, attribute, loaded
from graphql_fn.readmodels.connections import PageConnection, connection, of_list, of_sorted
from graphql_fn.readmodels.nodes import node_id
from graphql_fn.readmodels.paging import size_of
from graphql_fn.readmodels.tracker.queries import PROJECT_ORDER, QUERIES, TASK_ORDERS, Info, ProjectOf, history, public
from projections import timestamp_text
from servicekit import ReadReplica

LONGEST_PROFILE = 1024 * 1024
"""Bytes of a profile in a result."""
LONGEST_LOG = 64 * 1024
"""Bytes of the log of an attempt in a result: its end."""
REPORTS, REPORT_ROWS = "reports", 20_000
"""Functions of two reports, or commits of a search in the log, as rows of a table."""


def _projects_of(repo: RepoView, _info: Info, **page: Any) -> Any:
    found = sorted((ProjectOf(repo, project) for project in repo.projects), key=PROJECT_ORDER.key)
    return of_sorted(found, PROJECT_ORDER, **page)


async def _tasks_of(repo: RepoView, info: Info, **page: Any) -> PageConnection[TaskView]:
    context, order = info.context, TASK_ORDERS["CREATED_AT"]
    part = order.part(**page)
    found = await context.load(TrackerGraph.tasks_of, repo.id, part)
    return connection(found, part, order, lambda: context.count(TrackerGraph.count_tasks_of, repo.id))


def _settings_of(repo: RepoView, name: str) -> ProjectConfig:
    return repo.configs.get(name) or ProjectConfig()


def _history_of(project: ProjectOf, info: Info, **page: Any) -> Any:
    return history(project, info, project.analysis_id, **page)


def _attempts_of(task: TaskView, _info: Info) -> list[AttemptView]:
    return list(attempts_of(task.attempts))


async def _log_of(attempt: AttemptView, info: Info) -> str | None:
    if attempt.log is None:
        return None
    body: bytes = await public(info.context.reports.body(attempt.log.digest, "log of this attempt"))
    return body[-LONGEST_LOG:].decode(errors="replace")


def _analysis_of(task: TaskView, info: Info) -> Any:
    return None if task.analysis_id is None else info.context.load(TrackerGraph.analyses_of_tasks, task.id)


async def _profile_of(analysis: AnalysisView, info: Info) -> str | None:
    if analysis.profile_digest is None:
        return None
    body: bytes = await public(info.context.reports.body(analysis.profile_digest, "profile of this analysis"))
    if len(body) > LONGEST_PROFILE:
        raise PublicError(f"the profile has {len(body)} bytes, {LONGEST_PROFILE} are the most here: use the API")
    return body.decode(errors="replace")


async def _verdicts_of(analysis: AnalysisView, info: Info, first: int | None) -> Any:
    return await info.context.load(TrackerGraph.verdicts_of, analysis.task_id, size_of(first)) or ()


async def _functions_of(
    analysis: AnalysisView,
    info: Info,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the argument's name in the schema
    order_by: Mapping[str, Any] | None = None,
    **page: Any,
) -> Any:
    given = filter or {}
    package, least, part = given.get("package"), given.get("min_crap"), given.get("search")
    ordered: Sequence[FunctionView] = await public(info.context.reports.functions(analysis.report_digest))
    name = analysis.report_digest
    if order_by is not None:
        field, direction = order_by["field"], order_by["direction"]
        ordered, name = sorted(ordered, key=_FUNCTION_KEYS[field], reverse=direction == "DESC"), f"{name}/{field}/{direction}"
    places: Sequence[int] = range(len(ordered))
    if package is not None or least is not None or part is not None:
        places = [
            place
            for place, one in enumerate(ordered)
            if (package is None or one.package == package)
            and (least is None or one.crap >= least)
            and (part is None or part in one.function)
        ]
    return of_list(ordered, places, name, **page)


_FUNCTION_KEYS: Mapping[str, Callable[[FunctionView], Any]] = {
    "CRAP": lambda one: one.crap,
    "COMPLEXITY": lambda one: one.cyclomatic,
    "COVERAGE": lambda one: -1.0 if one.coverage is None else one.coverage,
    "NAME": lambda one: (one.function, one.file, one.line),
}


def _upper(name: str) -> Resolver:
    """The name of an enum's value in the usual form."""
    get = attrgetter(name)
    return SourceResolver(lambda source: str(get(source)).upper())


RESOLVERS: dict[str, Resolver] = {
    **QUERIES,
    "Repo.state": _upper("status"),
    "Repo.settings": lambda repo, _: _settings_of(repo, ROOT),
    "Repo.projects": _projects_of,
    "Repo.tasks": _tasks_of,
    "Project.id": lambda one, _: node_id("Project", one.repo.id, one.project.name),
    **{
        f"Project.{field}": attribute(f"project.{name}")
        for field, name in {
            "name": "name",
            "modulePath": "module_path",
            "goVersion": "go_version",
            "packages": "packages",
            "hasTests": "has_tests",
            "inWorkspace": "in_workspace",
            "problem": "problem",
        }.items()
    },
    "Project.settings": lambda one, _: _settings_of(one.repo, one.project.name),
    "Project.latestAnalysis": loaded(TrackerGraph.latest_of, "analysis_id"),
    "Project.history": _history_of,
    "Task.repo": loaded(TrackerGraph.repos_by_id, "repo_id"),
    "Task.state": _upper("status"),
    "Task.attempts": _attempts_of,
    "Task.rescoredFrom": loaded(TrackerGraph.tasks_by_id, "rescored_from"),
    "Task.analysis": _analysis_of,
    "Attempt.log": _log_of,
    "Analysis.id": lambda one, _: node_id("Analysis", one.task_id),
    "Analysis.historyId": attribute("analysis_id"),
    "Analysis.task": loaded(TrackerGraph.tasks_by_id, "task_id"),
    "Analysis.repo": loaded(TrackerGraph.repos_by_id, "repo_id"),
    **{f"Analysis.{name}": attribute(f"summary.{name}") for name in ("average", "combined", "exceeded")},
    "Analysis.totalFunctions": attribute("summary.total_funcs"),
    "Analysis.measured": attribute("known"),
    "Figures.totalFunctions": attribute("total_funcs"),
    **{f"Analysis.{name}": attribute(f"metadata.{name}") for name in ("stars", "forks", "language", "license")},
    "Analysis.functions": _functions_of,
    "Analysis.profile": _profile_of,
    "Analysis.verdicts": _verdicts_of,
    "Function.state": _upper("state"),
    "Function.complexity": attribute("cyclomatic"),
    "Function.statementCoverage": attribute("stmt_coverage"),
    "Diff.from": attribute("older"),
    "Diff.to": attribute("newer"),
    "Diff.changes": lambda found, _, first: found.changes[: PAGE if first is None else max(0, first)],
    "Diff.totalCount": lambda found, _: len(found.changes),
    "Change.status": _upper("status.value"),
    "Verdict.id": lambda one, _: node_id("Verdict", one.id),
    "Verdict.verdictId": attribute("id"),
    "Verdict.result": _upper("result.value"),
    "Verdict.baseKind": attribute("kind"),
    "Verdict.analysis": loaded(TrackerGraph.analyses_of_tasks, "head_task"),
    "Worker.id": lambda one, _: node_id("Worker", one.id),
    "Worker.name": attribute("id"),
    "Event.position": lambda one, _: str(one.position),
    "Event.sequence": attribute("position.sequence"),
    "Event.at": lambda one, _: one.at and timestamp_text(one.at),
    "Event.data": lambda one, _: json.loads(bytes(one.data)),
    "Event.actor": attribute("context.actor"),
}
LISTS = {name: name for name in ("Repo", "Project", "Task", "Analysis", "Function")}
NODES = {
    RepoView: "Repo",
    ProjectOf: "Project",
    TaskView: "Task",
    AnalysisView: "Analysis",
    VerdictView: "Verdict",
    WorkerView: "Worker",
}
SCANS = {
    "Query.repos": ("repos",),
    "Query.tasks": ("tasks",),
    "Query.analyses": ("analyses",),
    "Query.diff": (REPORTS,),
    "Query.events": (REPORTS,),
    "Repo.tasks": ("tasks",),
    **{
        f"{name}Connection.totalCount": (table,)
        for name, table in {"Task": "tasks", "Repo": "repos", "Analysis": "analyses"}.items()
    },
}
"""The tables of which a field may read all rows for a page of them."""


async def sizes(replica: ReadReplica) -> Mapping[str, int]:
    """About how many rows a field reads of each table, and of the stored reports."""
    return {**await sizes_of(replica), REPORTS: REPORT_ROWS}
