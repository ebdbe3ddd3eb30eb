"""`gctd task`: tasks and their results."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from gctd.cli.completion import task_ids
from gctd.cli.session import Session, client_command
from gctd.cli.tables.analyses import show_results
from gctd.cli.tables.tasks import show_task, show_tasks
from gctd.cli.tasks.attempts import attempts, log
from gctd.cli.tasks.exporting import export_task
from gctd.cli.tasks.follow import follow_all_tasks, under_way
from gctd.cli.tasks.progress import task_item
from gctd.cli.tasks.scheduled import top_option
from gctd.cli.tasks.watching import require_completed, watch
from terminalkit import Choice, ExitCode, examples
from terminalkit.client import one_more
from terminalkit.display import moment

STATUSES = ("pending", "queued", "running", "completed", "failed", "expired")
LISTED = 100
"""Default limit of the listed tasks."""

NO_SUCH_TASK = "gctd task list --show-seen"


@click.group()
def task() -> None:
    """List, show, watch, cancel, retry and delete tasks, and show their results."""


task.add_command(attempts)
task.add_command(log)
task.add_command(export_task)


@task.command(
    "list",
    epilog=examples(
        "gctd task list",
        "gctd task list --status failed --show-seen",
        "gctd task list --limit 0 --json | jq -r '.[].id'",
    ),
)
@click.option("--status", type=Choice(STATUSES), help="Only tasks in this status.")
@click.option("--show-seen", is_flag=True, help="Tasks marked as seen as well.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=LISTED, show_default=True, help="Limit of the list, newest first; 0 for all."
)
@client_command()
async def list_tasks(session: Session, *, status: str | None, show_seen: bool, limit: int) -> int:
    """List tasks, the newest first."""
    found = await session.client.tasks(status=status, show_seen=show_seen, limit=one_more(limit))
    return session.show_first(limit, found, show_tasks)


@task.command(
    "show",
    epilog=examples("gctd task show task-17", "gctd task show task-17 --json", "gctd task show task-17 --json | jq .reason"),
)
@click.argument("task_id", metavar="TASK", shell_complete=task_ids)
@client_command(not_found=NO_SUCH_TASK)
async def show(session: Session, *, task_id: str) -> int:
    """Show one task."""
    return session.show(await session.client.task(task_id), show_task)


@task.command(
    "result",
    epilog=examples(
        "gctd task result task-17",
        "gctd task result task-17 --top 5",
        "gctd task result task-17 --json | jq '.entries[] | select(.crap > 30)'",
    ),
)
@click.argument("task_id", metavar="TASK", shell_complete=task_ids)
@top_option
@client_command(not_found="gctd task show {task_id}")
async def result(session: Session, *, task_id: str, top: int) -> int:
    """Show the analysis of a completed task."""
    analysis = await session.client.result(task_id, entries=None if session.output.json else top)
    return session.show_one(analysis, lambda output, analyses: show_results(output, analyses, top))


@task.command(
    "watch",
    epilog=examples(
        "gctd task watch task-17 task-18",
        "gctd task watch --until terminal && echo all completed",
        "gctd task watch --json | jq -r '[.id, .status] | @tsv'",
    ),
)
@click.argument("ids", metavar="[TASK]...", nargs=-1, shell_complete=task_ids)
@click.option(
    "--until",
    type=Choice(["terminal", "forever"]),
    help="When to end.  [default: terminal for tasks that are named, else forever]",
)
@client_command(not_found=NO_SUCH_TASK)
async def watch_tasks(session: Session, *, ids: tuple[str, ...], until: str | None) -> int:
    """Follow tasks as they change.

    Named tasks, or with `--until terminal` all waiting and running tasks, are followed to their end. The exit code is 1 if one
    did not complete. Without a name every change of any task is a line. With --json each change is the whole task, one on a line.
    """
    if ids and until == "forever":
        raise click.UsageError("tasks that are named are followed to their end: leave out --until forever")
    if not ids and until != "terminal":
        return await _watch_all(session)
    tasks = await asyncio.gather(*map(session.client.task, dict.fromkeys(ids))) if ids else await under_way(session.client)
    if not tasks:
        session.output.note("no task is waiting or running")
        return ExitCode.OK
    session.leaves_behind("the tasks continue" if len(tasks) > 1 else f"{tasks[0].id} continues", "gctd task list")
    ended = await watch(
        session, tasks, on_change=(lambda one: session.output.record(one.document)) if session.output.json else None
    )
    if not session.output.json:
        show_tasks(session.output, ended)
    require_completed(session, ended)
    return ExitCode.OK


@task.command(
    "cancel",
    epilog=examples("gctd task cancel task-17", "gctd task cancel task-17 task-18 --quiet", "gctd task cancel task-17 --json"),
)
@click.argument("ids", metavar="TASK...", nargs=-1, required=True, shell_complete=task_ids)
@client_command(not_found=NO_SUCH_TASK)
async def cancel(session: Session, *, ids: tuple[str, ...]) -> int:
    """End tasks that wait or run; they stay in the lists as failed."""
    for id_ in ids:
        await session.client.cancel_task(id_)
        session.output.note(f"cancelled {id_}")
    return ExitCode.OK


@task.command(
    "retry",
    epilog=examples(
        "gctd task retry task-17",
        "gctd task retry task-17 && gctd task watch task-17",
        "gctd task list --status failed --json | jq -r '.[].id' | xargs gctd task retry",
    ),
)
@click.argument("ids", metavar="TASK...", nargs=-1, required=True, shell_complete=task_ids)
@client_command(not_found=NO_SUCH_TASK)
async def retry(session: Session, *, ids: tuple[str, ...]) -> int:
    """Queue tasks again that failed or expired; their attempts count on."""
    return session.show([await session.client.retry_task(id_) for id_ in ids], show_tasks)


@task.command(
    "delete",
    epilog=examples("gctd task delete task-17", "gctd task delete task-17 task-18 --quiet", "gctd task delete task-17 --json"),
)
@click.argument("ids", metavar="TASK...", nargs=-1, required=True, shell_complete=task_ids)
@client_command(not_found=NO_SUCH_TASK)
async def delete(session: Session, *, ids: tuple[str, ...]) -> int:
    """Delete tasks; one that runs is ended first."""
    for id_ in ids:
        await session.client.delete_task(id_)
        session.output.note(f"deleted {id_}")
    return ExitCode.OK


@task.command("hide-all", epilog=examples("gctd task hide-all", "gctd task hide-all --quiet", "gctd task hide-all --json"))
@client_command()
async def hide_all(session: Session) -> int:
    """Clear all tasks from the lists."""
    await session.client.hide_all()
    session.output.note("the list of tasks is empty now")
    return ExitCode.OK


async def _watch_all(session: Session) -> int:
    """A line for each change of any task, without an end."""
    async with aclosing(follow_all_tasks(session.client)) as changes:
        async for one in changes:
            if session.output.json:
                session.output.record(one.document)
            else:
                item = task_item(one)
                session.output.row([moment(one.updated_at), one.id, one.repo_url, one.project, item.state])
    return ExitCode.OK
