"""Commands that ask a server: their session, their common options, and how answers of the server are shown."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from terminalkit.client.errors import ClientError, NotFound
from terminalkit.commands.command import command
from terminalkit.config.flags import SettingFlags, SettingSources
from terminalkit.display.output import Output
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from terminalkit.client.resources import R, Resource
    from terminalkit.client.service import ServiceClient

Found = TypeVar("Found", bound="Resource | Sequence[Resource]")
Work = Callable[..., Coroutine[Any, Any, int]]


@attrs.frozen
class ClientSession:
    """A client of the server, and the run of the program that it belongs to. A program narrows the type of `client`."""

    client: Any
    invocation: Invocation

    @property
    def output(self) -> Output:
        """The output of the command."""
        return self.invocation.output

    async def on_not_found(self, arguments: Mapping[str, Any]) -> None:
        """Improve the advice, after the server did not find the thing that a command with these arguments is about."""

    def show(self, found: Found, table: Callable[[Output, Found], object]) -> int:
        """Write an answer of the server: its documents with `--json`, else by `table`. Return the exit code."""
        if self.output.json:
            self.output.document([one.document for one in found] if isinstance(found, Sequence) else found.document)
        else:
            table(self.output, found)
        return ExitCode.OK

    def show_one(self, found: R, table: Callable[[Output, Sequence[R]], object]) -> int:
        """As `show`, by a table with one row."""
        return self.show(found, lambda output, one: table(output, [one]))

    def show_first(self, limit: int, found: Sequence[R], table: Callable[[Output, Sequence[R]], object]) -> int:
        """As `show`, at most `limit` elements (0: all), with a note if more were found."""
        shown = found[:limit] if limit else found
        code = self.show(shown, table)
        if len(found) > len(shown):
            self.output.note(f"there are more than these {limit}: see --limit")
        return code


def one_more(limit: int) -> int | None:
    """Return the limit of a request that finds out whether there are more elements than `limit` (0: all)."""
    return limit + 1 if limit else None


def client_command(
    flags: SettingFlags[Any],
    client: Callable[[], type[ServiceClient]],
    session: type[ClientSession],
    *,
    not_found: str | None = None,
    time_limit: str = "--timeout",
    **limits: float,
) -> Callable[[Work], Callable[..., int]]:
    """Make the function of a command out of `async def f(session, ...) -> exit code`, with the options common to all.

    `client` may import modules that are slow. `not_found` and `time_limit` are as in `terminalkit.commands.command.command`,
    `limits` as of `ServiceClient`.
    """

    def decorate(work: Work) -> Callable[..., int]:
        @flags.options("url")
        @command(not_found=not_found, time_limit=time_limit)
        @wraps(work)
        async def with_session(invocation: Invocation, *, sources: SettingSources[Any], **arguments: Any) -> int:
            settings, trace = sources.load(running=("url",)).values, invocation.output.detail
            async with client()(settings.url, token=settings.auth_token, trace=trace, **limits) as asked:
                own = session(asked, invocation)
                try:
                    return await work(own, **arguments)
                except ClientError as error:
                    await asked.check_service(error)
                    if isinstance(error, NotFound):
                        await own.on_not_found(arguments)
                    raise

        return with_session

    return decorate
