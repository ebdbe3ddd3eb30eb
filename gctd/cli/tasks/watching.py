"""Waiting for tasks, with progress, and what it means that they ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing

from gctd.cli.session import Session
from gctd.cli.tasks.follow import follow_tasks
from gctd.cli.tasks.progress import progress, task_item
from gctd.client.resources import Task
from terminalkit.failure import Failure

_NAMED = 5
_WAITING = frozenset({"queued", "pending"})


async def watch(session: Session, tasks: Sequence[Task], *, on_change: Callable[[Task], None] | None = None) -> Sequence[Task]:
    """The tasks as they are when all have ended, in order.

    Meanwhile progress is shown, or `on_change` called in its place with each task, first as it is now, then as it changes.
    """
    last = {task.id: task for task in tasks}
    async with (
        progress(session.output, shown=on_change is None) as display,
        session.missing_worker_told(lambda: all(task.status in _WAITING for task in last.values())),
        aclosing(follow_tasks(session.client, tasks)) as changes,
    ):
        async for task in changes:
            last[task.id] = task
            display.show(task_item(task))
            if on_change is not None:
                on_change(task)
    return [last[task.id] for task in tasks]


def require_completed(session: Session, tasks: Sequence[Task]) -> None:
    """Raise Failure where one of the tasks did not complete: it says which, and why."""
    missed = [task for task in tasks if not task.completed]
    if not missed:
        return
    told = [f"{task.id} ({task.project}) {task.state}{f': {task.reason}' if task.reason else ''}" for task in missed[:_NAMED]]
    more = [f"and {len(missed) - _NAMED} more"] if len(missed) > _NAMED else []
    whole = "; ".join([*told, *more])
    why = whole if len(tasks) == 1 else f"{len(missed)} of {len(tasks)} tasks did not complete: {whole}"
    raise Failure(session.invocation.what, why, hint=f"gctd task show {missed[0].id}")
