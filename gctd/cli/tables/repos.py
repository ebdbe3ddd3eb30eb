"""Repositories and their projects as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gctd.cli.tables.analyses import SUMMARY, figures
from gctd.cli.tables.states import state_cell
from gctd.cli.tables.text import commit
from gctd.client.resources import Analysis, Repo
from terminalkit.display import Cell, Column, Output, Painted, moment


def show_repo(output: Output, repo: Repo) -> None:
    """A repository and its projects."""
    output.fields(
        [
            ("repository", repo.url),
            ("id", repo.id),
            ("status", state_cell(repo.status)),
            ("reason", repo.reason or ""),
            ("commit", repo.commit_sha or ""),
            ("examined at", moment(repo.profiled_at)),
        ]
    )
    if repo.projects:
        output.line("")
        show_projects(output, repo)


def show_repos(output: Output, repos: Sequence[tuple[Repo, Sequence[Analysis]]]) -> None:
    """Repositories with their latest analyses: a row for each project, or one for a repository whose projects are not known."""
    columns = [
        Column("REPOSITORY", "id"),
        Column("STATUS"),
        Column("PROJECT", "id", drop=2),
        Column("COMMIT", "number", drop=4),
        *SUMMARY,
        Column("ANALYZED", "number", drop=3),
        Column("ANALYSIS", "id", drop=6),
        Column("REASON"),
    ]
    rows = [row for repo, analyses in repos for row in _rows(repo, {one.project: one for one in analyses})]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    output.table(columns, rows)


def _rows(repo: Repo, analyses: Mapping[str, Analysis]) -> Iterator[list[Cell]]:
    problems = {project.name: project.problem for project in repo.projects}
    for name in sorted({*problems, *analyses}) or [""]:
        problem, analysis = problems.get(name), analyses.get(name)
        status = "error" if problem else "not analysed" if repo.status == "ready" and analysis is None else repo.status
        values: Sequence[Cell] = [""] * 7
        if analysis is not None:
            when = moment(analysis.analyzed_at)
            values = [commit(analysis.repo_info.commit_sha), *figures(analysis), when, analysis.id]
        yield [repo.url, state_cell(status), name, *values, problem or repo.reason or ""]


def show_projects(output: Output, repo: Repo) -> None:
    """The projects found in a repository."""
    columns = [
        Column("PROJECT", "id"),
        Column("MODULE", "id"),
        Column("GO", "number", drop=2),
        Column("PACKAGES", "number", drop=1),
        Column("TESTS", drop=3),
        Column("WORKSPACE", drop=4),
        Column("PROBLEM"),
    ]
    rows = [
        [
            project.name,
            project.module_path,
            project.go_version,
            str(project.packages),
            _yes(project.has_tests),
            _yes(project.in_workspace),
            Painted(project.problem, "red") if project.problem else "",
        ]
        for project in repo.projects
    ]
    if not any(project.problem for project in repo.projects):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    output.table(columns, rows)


def _yes(value: bool) -> str:  # noqa: FBT001 - one value, one word
    return "yes" if value else "no"
