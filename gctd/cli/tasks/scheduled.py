"""Tasks that a command has scheduled, seen through to their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gctd.cli.session import Session
from gctd.cli.tables.analyses import show_results
from gctd.cli.tables.tasks import show_tasks
from gctd.cli.tables.text import commit
from gctd.cli.tasks.watching import require_completed, watch
from gctd.client.resources import Analysis, Task
from terminalkit import ExitCode
from terminalkit.display import count

TOP = 20
"""Default limit of the worst functions that are shown."""

top_option = click.option(
    "--top", type=click.IntRange(min=0), default=TOP, show_default=True, help="How many of the worst functions to show."
)
no_wait_option = click.option("--no-wait", is_flag=True, help="Schedule the tasks and do not wait for them.")


async def see_through(session: Session, url: str, tasks: Sequence[Task], *, top: int, no_wait: bool) -> int:
    """Wait for the tasks, with progress, then show the worst functions and the figures. Return the exit code.

    With `no_wait` the tasks are shown in their current state. Raises Failure if one did not complete.
    """
    names = " ".join(task.id for task in tasks)
    session.leaves_behind(
        f"{count(len(tasks), 'task')} continue" if len(tasks) > 1 else f"{names} continues", f"gctd task watch {names}"
    )
    if no_wait:
        if session.output.json:
            session.output.document(_result(url, tasks, []))
        else:
            show_tasks(session.output, tasks)
        return ExitCode.OK
    tasks = await watch(session, tasks)
    entries = None if session.output.json else top
    analyses = [await session.client.result(task.id, entries=entries) for task in tasks if task.completed]
    if session.output.json:
        session.output.document(_result(url, tasks, analyses))
    elif analyses:
        show_results(session.output, analyses, top)
        for task, analysis in zip((task for task in tasks if task.completed), analyses, strict=True):
            if analysis.rescored_from and not task.rescored_from:
                done = f"{commit(analysis.repo_info.commit_sha)} of {analysis.project} was analysed before"
                session.output.note(f"{done}, by {analysis.rescored_from}: --again runs the tests again")
    require_completed(session, tasks)
    return ExitCode.OK


def _result(url: str, tasks: Sequence[Task], analyses: Sequence[Analysis]) -> dict[str, Any]:
    return {
        "repo_url": tasks[0].repo_url if tasks else url,
        "tasks": [task.document for task in tasks],
        "analyses": [analysis.document for analysis in analyses],
    }
