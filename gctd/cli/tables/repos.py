"""Repositories and their projects as tables."""

from __future__ import annotations

from gctd.cli.tables.states import state_cell
from gctd.client.resources import Repo
from terminalkit.display.output import Output
from terminalkit.display.table import Column, Painted
from terminalkit.display.text import moment


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
