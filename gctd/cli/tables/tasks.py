"""Tasks and their attempts as tables."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.cli.tables.states import state_cell
from gctd.cli.tables.text import commit
from gctd.client.resources import Attempt, Task
from terminalkit.display import Cell, Column, Output, Painted, duration, moment, size


def show_tasks(output: Output, tasks: Sequence[Task]) -> None:
    """Tasks, one on a line."""
    columns = [
        Column("TASK", "id"),
        Column("STATUS"),
        Column("STAGE", drop=4),
        Column("ATTEMPT", "number", drop=3),
        Column("REPOSITORY", "id"),
        Column("PROJECT", "id", drop=1),
        Column("REF", "id", drop=5),
        Column("COMMIT", "number", drop=6),
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
                task.ref,
                commit(task.commit_sha),
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


def _reason(task: Task) -> Cell:
    if not task.reason or task.completed:
        return ""
    return Painted(task.reason, "red") if task.ended else task.reason
