"""Waiting for tasks, with progress, and the result of the command at their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing

from gctd.cli.session import Session
from gctd.cli.tasks.follow import follow_tasks
from gctd.cli.tasks.progress import progress, task_item
from gctd.client.resources import Task
from terminalkit import Failure

_NAMED = 5
_WAITING = frozenset({"queued", "pending"})


async def watch(session: Session, tasks: Sequence[Task], *, on_change: Callable[[Task], None] | None = None) -> Sequence[Task]:
    """Return the final states of the tasks when all have ended, in order.

    Progress is shown during the wait. `on_change` replaces it: it is called with the current state of each task, then with each
    change.
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
    """Raise Failure if one of the tasks did not complete. The text names it, with the reason."""
    missed = [task for task in tasks if not task.completed]
    if not missed:
        return
    told = [f"{task.id} ({task.project}) {task.state}{f': {task.reason}' if task.reason else ''}" for task in missed[:_NAMED]]
    more = [f"and {len(missed) - _NAMED} more"] if len(missed) > _NAMED else []
    whole = "; ".join([*told, *more])
    why = whole if len(tasks) == 1 else f"{len(missed)} of {len(tasks)} tasks did not complete: {whole}"
    raise Failure(session.invocation.what, why, hint=f"gctd task show {missed[0].id}")
