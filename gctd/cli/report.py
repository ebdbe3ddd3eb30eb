"""Repositories, tasks, analyses and workers as tables."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.cli.text import commit, score
from gctd.client.resources import Analysis, Attempt, Entry, LeftOut, PackageProblem, Repo, Summary, Task, Worker
from terminalkit.output import Output
from terminalkit.table import Cell, Column, Painted
from terminalkit.text import NOT_MEASURED, duration, moment, percent, size

THRESHOLD = 30.0
"""The CRAP value above which a function is shown as risky."""

PHASE_COLOURS = {
    "completed": "green",
    "ready": "green",
    "idle": "green",
    "busy": "cyan",
    "running": "cyan",
    "pending": "yellow",
    "paused": "yellow",
    "draining": "yellow",
    "failed": "red",
    "expired": "red",
    "lost": "red",
    "cancelled": "red",
    "deleted": "red",
    "error": "red",
    "gone": "red",
}
"""The colour of a state; one that is not here has none."""


def state_cell(state: str) -> Cell:
    """A state in its colour."""
    colour = PHASE_COLOURS.get(state)
    return state if colour is None else Painted(state, colour)


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


def show_tasks(output: Output, tasks: Sequence[Task]) -> None:
    """Tasks, one on a line."""
    columns = [
        Column("TASK", "id"),
        Column("STATUS"),
        Column("STAGE", drop=4),
        Column("ATTEMPT", "number", drop=3),
        Column("REPOSITORY", "id"),
        Column("PROJECT", "id", drop=1),
        Column("UPDATED", "number", drop=2),
        Column("REASON"),
    ]
    output.table(
        columns,
        [
            [
                task.id,
                state_cell(task.state),
                task.stage or "" if task.status == "running" else "",
                f"{task.attempt}/{task.max_attempts}",
                task.repo_url,
                task.project,
                moment(task.updated_at),
                _reason(task),
            ]
            for task in tasks
        ],
    )


def show_task(output: Output, task: Task) -> None:
    """All that is known of a task."""
    lasted = duration((task.updated_at - task.created_at).total_seconds()) if task.ended else ""
    output.fields(
        [
            ("task", task.id),
            ("repository", task.repo_url),
            ("project", task.project),
            ("ref", task.ref),
            ("commit", task.commit_sha or ""),
            ("scores again", task.rescored_from or ""),
            ("status", state_cell(task.state)),
            ("reason", _reason(task)),
            ("stage", task.stage or ""),
            ("attempt", f"{task.attempt}/{task.max_attempts}"),
            ("worker", task.worker or ""),
            ("engine", task.engine),
            ("created at", moment(task.created_at)),
            ("updated at", moment(task.updated_at)),
            ("took", lasted),
            ("analysis", task.analysis_id or ""),
        ]
    )


def show_attempts(output: Output, attempts: Sequence[Attempt]) -> None:
    """The attempts at a task, one on a line."""
    columns = [
        Column("ATTEMPT", "number"),
        Column("OUTCOME"),
        Column("WORKER", "id", drop=3),
        Column("STARTED", "number", drop=2),
        Column("TOOK", "number", drop=1),
        Column("STAGES", drop=4),
        Column("LOG", "number", drop=5),
        Column("REASON"),
    ]
    output.table(
        columns,
        [
            [
                str(one.attempt),
                state_cell(one.outcome or "running"),
                one.worker,
                moment(one.started_at),
                duration((one.ended_at - one.started_at).total_seconds()) if one.ended_at else "",
                ", ".join(
                    stage.stage if stage.duration_ms is None else f"{stage.stage} {duration(stage.duration_ms / 1000)}"
                    for stage in one.stages
                ),
                size(one.log.size) if one.log else "",
                one.reason,
            ]
            for one in attempts
        ],
    )


def show_workers(output: Output, workers: Sequence[Worker]) -> None:
    """Workers, one on a line."""
    columns = [
        Column("WORKER", "id"),
        Column("STATUS"),
        Column("HOST", drop=2),
        Column("PID", "number", drop=5),
        Column("CPU", "number", drop=4),
        Column("MEMORY", "number", drop=3),
        Column("JOBS", "number"),
        Column("VERSION", drop=6),
        Column("GO", drop=7),
        Column("SANDBOX", drop=8),
        Column("TASKS", drop=1),
    ]
    output.table(
        columns,
        [
            [
                worker.id,
                state_cell(worker.status),
                worker.host,
                str(worker.pid),
                percent(None if worker.cpu is None else worker.cpu * 100),
                size(worker.memory),
                NOT_MEASURED if worker.concurrency is None else f"{len(worker.tasks)}/{worker.concurrency}",
                worker.version,
                worker.go_version,
                worker.sandbox,
                " ".join(worker.tasks),
            ]
            for worker in workers
        ],
    )


def show_analyses(output: Output, analyses: Sequence[Analysis]) -> None:
    """The latest analyses, one on a line."""
    columns = [
        Column("REPOSITORY", "id"),
        Column("PROJECT", "id", drop=2 if len({one.project for one in analyses}) > 1 else 5),
        Column("COMMIT", "number", drop=4),
        *SUMMARY,
        Column("ANALYZED", "number", drop=3),
        Column("ANALYSIS", "id", drop=6),
    ]
    rows = [
        [
            analysis.repo_info.url,
            analysis.project,
            commit(analysis.repo_info.commit_sha),
            *figures(analysis.summary),
            moment(analysis.analyzed_at),
            analysis.id,
        ]
        for analysis in analyses
    ]
    output.table(columns, rows)


def show_results(output: Output, analyses: Sequence[Analysis], top: int) -> None:
    """The `top` worst functions of all these analyses together, then the figures of each project."""
    worst = sorted(
        ((analysis, entry) for analysis in analyses for entry in analysis.entries if entry.known or analysis.measured is None),
        key=lambda pair: (-pair[1].crap, pair[0].project, pair[1].file, pair[1].line),
    )[:top]
    several = len(analyses) > 1
    if worst:
        columns = [
            Column("CRAP", "number"),
            Column("COMPLEXITY", "number"),
            Column("COVERAGE", "number"),
            Column("FUNCTION"),
            *([Column("PROJECT", "id", drop=1)] if several else []),
            Column("LOCATION", "id"),
        ]
        output.table(columns, [_function(entry, analysis.project if several else None) for analysis, entry in worst])
        output.line("")
    output.table(
        [
            Column("PROJECT", "id"),
            *SUMMARY,
            Column("NOT MEASURED", "number"),
            Column("COMMIT", "number", drop=3),
            Column("ENGINE", drop=1),
            Column("TOOK", "number", drop=2),
        ],
        [
            [
                analysis.project,
                *figures(analysis.measured or analysis.summary),
                NOT_MEASURED if analysis.unmeasured is None else str(analysis.unmeasured),
                commit(analysis.repo_info.commit_sha),
                analysis.engine,
                duration(analysis.duration_ms / 1000),
            ]
            for analysis in analyses
        ],
    )
    unmeasured = [
        (analysis.project, LeftOut(path=f"{entry.file}:{entry.line} {entry.function}", reason=f"{entry.state}: {entry.reason}"))
        for analysis in analyses
        for entry in analysis.entries
        if not entry.known and entry.crap > THRESHOLD and analysis.measured is not None
    ]
    _show_gaps(output, ("FUNCTION", "NOT MEASURED"), unmeasured[:top], several=several)
    uncovered = [(analysis.project, package) for analysis in analyses for package in analysis.uncovered]
    _show_gaps(output, ("PACKAGE", "WITHOUT COVERAGE"), uncovered, several=several)
    left_out = [(analysis.project, warning) for analysis in analyses for warning in analysis.warnings]
    _show_gaps(output, ("PATH", "NOT IN THE NUMBERS"), left_out, several=several)


def _show_gaps(
    output: Output, titles: tuple[str, str], gaps: Sequence[tuple[str, PackageProblem | LeftOut]], *, several: bool
) -> None:
    """Print the gaps of the figures, so that no reader takes the figures for complete."""
    if gaps:
        columns = [*([Column("PROJECT")] if several else []), *map(Column, titles)]
        output.line("")
        output.table(columns, [[*([project] if several else []), gap.path, gap.reason] for project, gap in gaps])


SUMMARY = (
    Column("FUNCTIONS", "number"),
    Column("AVERAGE", "number"),
    Column("TOTAL", "number", drop=1),
    Column("RISKY", "number"),
)


def figures(summary: Summary) -> list[Cell]:
    """The figures of an analysis, in the columns of SUMMARY."""
    exceeded = str(summary.exceeded)
    return [
        str(summary.total_funcs),
        score(summary.average),
        score(summary.combined),
        Painted(exceeded, "red") if summary.exceeded else exceeded,
    ]


def _function(entry: Entry, project: str | None) -> list[Cell]:
    crap = score(entry.crap)
    return [
        Painted(crap, "red") if entry.crap > THRESHOLD else crap,
        str(entry.cyclomatic),
        percent(entry.coverage),
        entry.function,
        *([] if project is None else [project]),
        f"{entry.file}:{entry.line}",
    ]


def _reason(task: Task) -> Cell:
    if not task.reason or task.completed:
        return ""
    return Painted(task.reason, "red") if task.ended else task.reason


def _yes(value: bool) -> str:  # noqa: FBT001 - one value, one word
    return "yes" if value else "no"
