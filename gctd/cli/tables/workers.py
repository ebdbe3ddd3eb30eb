"""Workers as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.cli.tables.states import state_cell
from gctd.client.resources import Worker
from terminalkit.display import NOT_MEASURED, Cell, Column, Output, Painted, percent, size


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
        Column("REASON"),
    ]
    rows: list[list[Cell]] = [
        [
            worker.id,
            state_cell(worker.status),
            worker.host,
            str(worker.pid),
            percent(None if worker.cpu is None else worker.cpu * 100),
            size(worker.memory),
            NOT_MEASURED if worker.slots is None else f"{len(worker.tasks)}/{worker.slots}",
            worker.version,
            worker.go_version,
            worker.sandbox,
            " ".join(worker.tasks),
            Painted(worker.reason, "red") if worker.reason else "",
        ]
        for worker in workers
    ]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    output.table(columns, rows)
