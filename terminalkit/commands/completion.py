"""Shell completion: the scripts, and values that a server knows."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import click

from terminalkit.commands.command import Choice, examples
from terminalkit.commands.program import ASKING, completion_variable
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import begin_invocation

PATIENCE = 0.3
"""Seconds that a server has to answer: a shell that hangs at each tab is worse than one that offers nothing."""

T = TypeVar("T")
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def completion_command(program: str, what: str) -> click.Command:
    """The command that prints the script by which a shell completes `what`: commands, options, and values by name."""

    @click.command(
        "completion",
        help=f"Print the script that lets SHELL complete {what}.",
        epilog=examples(
            f'eval "$({program} completion bash)"',
            f"{program} completion zsh > ~/.zfunc/_{program}",
            f"{program} completion fish > ~/.config/fish/completions/{program}.fish",
        ),
    )
    @click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
    @click.pass_context
    def completion(ctx: click.Context, shell: str) -> int:
        from click.shell_completion import get_completion_class  # noqa: PLC0415 - only here

        output = begin_invocation(ctx).output
        kind = get_completion_class(shell)
        assert kind is not None, "click knows these shells"
        output.raw(kind(ctx.find_root().command, {}, program, completion_variable(program)).source() + "\n")
        return ExitCode.OK

    return completion


def completes(client: Callable[[], AbstractAsyncContextManager[T]], values: Callable[[T], Awaitable[Iterable[str]]]) -> Complete:
    """Completion of an argument with the values that a client gives, or with no values if it fails or takes too long.

    `client` imports slow modules and reads the settings. `values` asks the server, within a time limit. It runs in a separate
    thread, because the look-up of a host's name cannot be cut short otherwise.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        del ctx, param
        found: list[str] = []

        async def within_time() -> None:
            async with asyncio.timeout(PATIENCE), prepared as asked:
                found.extend(await values(asked))

        def in_thread() -> None:
            with contextlib.suppress(Exception):  # the command itself will report the error
                asyncio.run(within_time())

        try:
            prepared = client()
        except Exception:  # noqa: BLE001 - as above
            return []
        asking = threading.Thread(target=in_thread, name=ASKING, daemon=True)
        asking.start()
        asking.join(PATIENCE)
        return sorted({value for value in found.copy() if value.startswith(incomplete)})

    return complete
