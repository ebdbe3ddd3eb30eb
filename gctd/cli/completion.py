"""Shell completion: the scripts, and values that the server knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import click

from gctd.cli.invocation import COMPLETE_VARIABLE, begin
from gctd.cli.options import examples
from gctd.client.errors import ClientError, ExitCode

if TYPE_CHECKING:
    from gctd.client.api import Client

PATIENCE = 0.3
"""Seconds that the server has to answer: a shell that hangs at each tab is worse than one that offers nothing."""

_TASKS = 50

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


@click.command(
    epilog=examples(
        'eval "$(gctd completion bash)"',
        "gctd completion zsh > ~/.zfunc/_gctd",
        "gctd completion fish > ~/.config/fish/completions/gctd.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the script that lets SHELL complete commands, options, repositories, tasks and workers."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only here

    output = begin(ctx).output
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    output.raw(kind(ctx.find_root().command, {}, "gctd", COMPLETE_VARIABLE).source() + "\n")
    return ExitCode.OK


def _completes(values: Callable[[Client], Awaitable[Iterable[str]]]) -> Complete:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        del ctx, param
        from gctd.client.api import Client  # noqa: PLC0415 - slow, and seldom wanted
        from gctd.settings import SettingsError, load  # noqa: PLC0415 - as above

        async def ask() -> Iterable[str]:
            settings = load().settings
            async with asyncio.timeout(PATIENCE), Client(settings.url, token=settings.auth_token) as client:
                return await values(client)

        try:
            found = asyncio.run(ask())
        except (ClientError, SettingsError, TimeoutError):
            return []  # a completion that cannot be had is none; the command itself will say what is wrong
        return sorted({value for value in found if value.startswith(incomplete)})

    return complete


async def _repo_urls(client: Client) -> Iterable[str]:
    return [analysis.repo_info.url for analysis in await client.analyses()]


async def _task_ids(client: Client) -> Iterable[str]:
    return [task.id for task in await client.tasks(limit=_TASKS)]


async def _worker_ids(client: Client) -> Iterable[str]:
    return [worker.id for worker in await client.workers()]


repo_urls = _completes(_repo_urls)
task_ids = _completes(_task_ids)
worker_ids = _completes(_worker_ids)
