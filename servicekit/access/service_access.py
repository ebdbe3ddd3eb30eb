"""Tokens and sessions at the edge of a service with a log (`httpkit.server.callers.Access`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import attrs
import structlog

from eventlog import Context
from eventlog.commands import Commands
from httpkit.server.callers import Caller, Scope
from httpkit.server.guard import SHARED_CALLER, same_secret
from servicekit.access.directory import TokenDirectory
from servicekit.access.issuing import SessionText, TokenText, digest
from servicekit.access.tokens import COARSE, SHARED, CloseSession, OpenSession, Session, Token, UseToken

_log = structlog.get_logger(__name__)

SESSION = timedelta(days=14)
"""The longest time of a session."""


def caller_with(token: Token, service: str, session: Session | None = None) -> Caller:
    """Return the holder of a token, as events name it, with the rights of the session."""
    scope = Scope((session.scope if session is not None else "") or token.scope)
    id_ = None if session is None else session.id
    if token.id == SHARED:
        return attrs.evolve(SHARED_CALLER, scope=scope, session=id_)
    return Caller(
        actor=f"token:{token.id}:{token.name}", scope=scope, name=token.name, realm=service, token=token.id, session=id_
    )


async def holder(directory: TokenDirectory, text: str, now: datetime) -> Token | None:
    """Return the valid token that a text is; None for another text."""
    given = TokenText.parse(text)
    if given is None or given.service != directory.tokens.service:
        return None
    token = await directory.find(given.id)
    if token is None or not same_secret(given.digest, token.digest) or not token.is_valid(now):
        return None
    return token


def end_of(token: Token | None, latest: datetime) -> datetime:
    """Return the end of something that ends with its token (None: the shared token) and at `latest`."""
    return latest if token is None or token.expires_at is None else min(latest, token.expires_at)


@attrs.define(eq=False)
class ServiceAccess:
    """See `httpkit.server.callers.Access`. `shared` is the token of the setting `auth_token`, which has all rights."""

    directory: TokenDirectory
    commands: Commands
    shared: str | None = attrs.field(kw_only=True, repr=False)
    now: Callable[[], datetime] = attrs.field(default=lambda: datetime.now(UTC), kw_only=True)
    _noting: dict[str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)

    async def by_token(self, text: str) -> Caller | None:
        """See `Access.by_token`."""
        if self.shared is not None and same_secret(text, self.shared):
            return SHARED_CALLER
        token = await holder(self.directory, text, self.now())
        if token is None:
            return None
        self._note_use(token)
        return self.caller(token)

    async def by_session(self, cookie: str) -> Caller | None:
        """See `Access.by_session`."""
        given = self.parse(cookie)
        if given is None:
            return None
        now = self.now()
        token = await self.directory.find(given.token)
        if token is None or token.session(given.id, now) is None:  # it may have been opened a moment ago, on another process
            token = await self.directory.find_newest(given.token)
        if token is None or not token.is_valid(now):
            return None
        session = token.session(given.id, now)
        if session is None or not same_secret(self.digest_of(given), session.digest):
            return None
        if token.id != SHARED:
            self._note_use(token)
        return self.caller(token, session)

    async def open_session(self, caller: Caller) -> tuple[str, int]:
        """See `Access.open_session`. Raises TokenRefused, and the errors of `Commands.execute`."""
        assert caller.token is not None, "a session is opened with a token"
        now, made = self.now(), SessionText.make(caller.token)
        token = None if caller.token == SHARED else await self.directory.find(caller.token)
        end = end_of(token, now + SESSION)
        command = OpenSession(session=made.id, digest=self.digest_of(made), expires_at=end, at=now)
        await self.commands.execute(self.directory.tokens.decider, made.token, command, Context(actor=caller.actor))
        return made.reveal(), int((end - now).total_seconds())

    async def close_session(self, cookie: str) -> None:
        """See `Access.close_session`. Raises the errors of `Commands.execute`."""
        caller = await self.by_session(cookie)
        if caller is not None and caller.session is not None:
            await self.end_session(caller.session, caller)

    async def end_session(self, session: str, caller: Caller) -> None:
        """End a session of the caller's token, or withdraw a code. This process knows at once. Raises as `Commands.execute`."""
        assert caller.token is not None, "a session is of a token"
        command = CloseSession(session=session, at=self.now())
        await self.commands.execute(self.directory.tokens.decider, caller.token, command, Context(actor=caller.actor))
        await self.directory.find_newest(caller.token)

    def is_token(self, text: str) -> bool:
        """See `Access.is_token`."""
        return TokenText.parse(text) is not None

    def parse(self, text: str) -> SessionText | None:
        """Return the parts of a cookie or a code. None for another form, and for the shared token if it is not set."""
        given = SessionText.parse(text)
        return None if given is None or (given.token == SHARED and self.shared is None) else given

    def caller(self, token: Token, session: Session | None = None) -> Caller:
        """Return the holder of a token of this service, as `caller_with` does."""
        return caller_with(token, self.directory.tokens.service, session)

    def digest_of(self, session: SessionText) -> str:
        """Return the digest of a session's secret; with the shared token as key, so that another token ends its sessions."""
        return digest(session.secret, (self.shared or "") if session.token == SHARED else "")

    def _note_use(self, token: Token) -> None:
        now = self.now()
        if token.id in self._noting or (token.used_at is not None and now - token.used_at < COARSE):
            return
        noting = self._noting[token.id] = asyncio.create_task(self._noted(token.id, now))
        noting.add_done_callback(lambda _: self._noting.pop(token.id, None))

    async def _noted(self, id_: str, at: datetime) -> None:
        try:
            await self.commands.execute(self.directory.tokens.decider, id_, UseToken(at=at))
        except Exception as error:  # noqa: BLE001 - a request is not refused because its token's use cannot be noted
            _log.info("use of a token not noted", token=id_, reason=str(error))
