"""`gctd task attempts` and `gctd task log`: the attempts at a task, their outcomes and their logs."""

from __future__ import annotations

import time
from contextlib import aclosing

import click

from gctd.cli.completion import task_ids
from gctd.cli.session import Session, client_command
from gctd.cli.tables.tasks import show_attempts
from gctd.cli.tasks.follow import PATIENCE, decoded, follow_tasks
from terminalkit import ExitCode, examples
from terminalkit.client import NotFound, ReceivedFrame, StreamLost

_NO_SUCH_TASK = "gctd task list --show-seen"


@click.command(
    "attempts",
    epilog=examples(
        "gctd task attempts task-17",
        "gctd task attempts task-17 --json | jq '.[-1].stages'",
        "gctd task attempts task-17 --json | jq -r '.[].reason'",
    ),
)
@click.argument("task_id", metavar="TASK", shell_complete=task_ids)
@client_command(not_found=_NO_SUCH_TASK)
async def attempts(session: Session, *, task_id: str) -> int:
    """Show the attempts at a task: worker, stages, outcome."""
    found = await session.client.attempts(task_id)
    session.show(found, show_attempts)
    if not found:
        session.output.note(f"no worker has begun {task_id} yet")
    return ExitCode.OK


@click.command(
    "log",
    epilog=examples(
        "gctd task log task-17",
        "gctd task log task-17 --attempt 1 | less",
        "gctd task log task-17 --follow",
    ),
)
@click.argument("task_id", metavar="TASK", shell_complete=task_ids)
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt.  [default: the last]")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt is over, from its beginning.")
@client_command(not_found="gctd task attempts {task_id}")
async def log(session: Session, *, task_id: str, attempt: int | None, follow: bool) -> int:
    """Show the output of an attempt at a task: from git, go, the tests, the engine, the worker.

    --follow also waits for the first attempt of a task. With --json the output is one document, or with --follow one for each
    piece of the log, then one with the outcome.
    """
    number = attempt or await _last_attempt(session, task_id, wait=follow)
    if follow:
        await _follow(session, task_id, number)
        return ExitCode.OK
    text = await session.client.log(task_id, number)
    if session.output.json:
        session.output.document({"attempt": number, "log": text})
    else:
        session.output.lines(text)
    return ExitCode.OK


async def _last_attempt(session: Session, task_id: str, *, wait: bool) -> int:
    """Return the number of the last attempt. Raises NotFound if no attempt exists, or with `wait` will exist."""
    task = await session.client.task(task_id)
    if wait and not task.attempt and not task.ended:
        session.output.note(f"{task_id} waits for a worker")
        session.leaves_behind(f"{task_id} continues", f"gctd task log {task_id} --follow")
        async with aclosing(follow_tasks(session.client, [task])) as changes:
            async for task in changes:
                if task.attempt or task.ended:
                    break
    if not task.attempt:
        raise NotFound(f"no worker has begun {task_id}: it is {task.state}")
    return task.attempt


async def _follow(session: Session, task_id: str, number: int) -> None:
    heard = time.monotonic()
    session.leaves_behind(f"{task_id} continues", f"gctd task log {task_id} --attempt {number} --follow")
    async with aclosing(session.client.log_feed(task_id, number)) as feed:
        async for signal in feed:
            if isinstance(signal, StreamLost):
                if time.monotonic() - heard > PATIENCE:
                    raise signal.error
                continue
            heard = time.monotonic()
            if not isinstance(signal, ReceivedFrame):
                continue
            document = decoded(signal, dict[str, object])
            if session.output.json:
                session.output.record(document)
            elif signal.event == "log":
                session.output.lines(str(document.get("text", "")))
            if signal.event == "end":
                outcome, reason = document.get("outcome", ""), document.get("reason", "")
                session.output.note(
                    f"attempt {number} of {task_id}: {outcome}{f' ({reason})' if reason not in {'', outcome} else ''}"
                )
                return
