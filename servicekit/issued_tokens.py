"""The commands `token create`, `token list` and `token revoke` of a service's program."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from terminalkit.config.flags import SettingFlags, SettingSources
from terminalkit.coroutine import Choice, command, examples
from terminalkit.display.output import Output
from terminalkit.display.table import Column, moment
from terminalkit.failure import ExitCode
from terminalkit.invocation import Invocation
from terminalkit.service_commands import check_default_broker

if TYPE_CHECKING:
    from servicekit.access.tokens import Token, TokenOffice
    from servicekit.service import Service

C = TypeVar("C")
_DAYS = 90
_SCOPES = ("read", "write", "admin")


def token_commands(flags: SettingFlags[C], program: str, service: Callable[[], Service]) -> click.Group:
    """Return the group `token` of a program. `service` may import modules that are slow."""

    @asynccontextmanager
    async def office(invocation: Invocation, sources: SettingSources[Any]) -> AsyncIterator[TokenOffice]:
        from eventlog.jetstream.log import JetStreamLog  # noqa: PLC0415 - slow, and help does without it
        from servicekit.access.tokens import TokenOffice  # noqa: PLC0415 - likewise

        found, loaded = service(), sources.load(running=("nats_url",))
        assert found.tokens is not None, "a service with this command has tokens"
        check_default_broker(loaded, invocation.what, up=f"{program} up", looked=True)
        async with found.connected(loaded.values) as connection:
            log = JetStreamLog(connection, found.model.stream, found.model.registry)
            yield TokenOffice(found.tokens, log, actor=f"operator:{getpass.getuser()}")

    @click.group("token", help="Create, list and revoke the tokens of the API.")
    def token() -> None:
        """It only has commands."""

    @token.command(
        "create",
        epilog=examples(
            f"{program} token create ci --scope write",
            f"{program} token create anna --scope admin --days 30",
            f"{program} token create wall-display > token.txt",
        ),
    )
    @click.argument("name")
    @click.option(
        "--scope",
        type=Choice(_SCOPES),
        default="read",
        show_default=True,
        help="Rights: read, or write to change things as well, or admin to delete, pause and erase as well.",
    )
    @click.option(
        "--days", type=click.IntRange(1, 366), default=_DAYS, show_default=True, help="Days for which the token is valid."
    )
    @flags.options("nats_url")
    @command(logs=True)
    async def create(invocation: Invocation, *, sources: SettingSources[Any], name: str, scope: str, days: int) -> int:
        """Create a token with NAME, which events show. The token is written to standard output, once, and stored nowhere.

        The command writes to the log itself: it needs the broker, and no server.
        """
        from httpkit.routes import Scope  # noqa: PLC0415 - slow, and help does without it

        async with office(invocation, sources) as desk:
            new = await desk.issue(name, Scope(scope), timedelta(days=days))
        if invocation.output.json:
            invocation.output.document({**_document(new.token), "token": new.text})
        else:
            invocation.output.line(new.text)
        invocation.output.note(f"keep it: it is not shown again; to revoke it: {program} token revoke {new.token.id}")
        return ExitCode.OK

    @token.command(
        "list", epilog=examples(f"{program} token list", f"{program} token list --json", f"{program} token list | sort")
    )
    @flags.options("nats_url")
    @command(logs=True)
    async def list_tokens(invocation: Invocation, *, sources: SettingSources[Any]) -> int:
        """List the tokens, the newest first, with their state and the time of their last use (to the hour)."""
        async with office(invocation, sources) as desk:
            tokens = await desk.tokens()
        if invocation.output.json:
            invocation.output.document([_document(one) for one in tokens])
        else:
            _show(invocation.output, [_document(one) for one in tokens])
        return ExitCode.OK

    @token.command(
        "revoke",
        epilog=examples(
            f"{program} token revoke 3f2a9c81d07e",
            f"{program} token revoke 3f2a9c81d07e 9b1e44c0aa35",
            f"{program} token revoke 3f2a9c81d07e --json",
        ),
    )
    @click.argument("ids", metavar="ID...", nargs=-1, required=True)
    @flags.options("nats_url")
    @command(not_found=f"{program} token list", logs=True)
    async def revoke(invocation: Invocation, *, sources: SettingSources[Any], ids: tuple[str, ...]) -> int:
        """Revoke tokens by their ids, and end the sessions of browsers that signed in with them.

        Within a second no server takes them any more.
        """
        async with office(invocation, sources) as desk:
            for id_ in ids:
                revoked = await desk.revoke(id_)
                invocation.output.note(f"{revoked.name} ({revoked.id}) is revoked")
        return ExitCode.OK

    return token


def _document(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "state": _state(token),
        "created_at": moment(token.created_at),
        "expires_at": moment(token.expires_at) or None,
        "used_at": moment(token.used_at) or None,
        "revoked_at": moment(token.revoked_at) or None,
        "sessions": sum(datetime.now(UTC) < session.expires_at for session in token.sessions),
    }


def _state(token: Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.is_valid(datetime.now(UTC)) else "expired"


def _show(output: Output, tokens: list[dict[str, Any]]) -> None:
    names = ("id", "name", "scope", "state", "expires_at", "used_at")
    titles = ("ID", "NAME", "SCOPE", "STATE", "EXPIRES", "LAST USE")
    columns = [Column(title, "id" if title in ("ID", "NAME") else "text") for title in titles]
    output.table(columns, [[str(one[name] or "-") for name in names] for one in tokens])
