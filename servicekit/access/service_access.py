"""Requests against personal tokens: their look-up in the tables, sessions of browsers, pairing of devices."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import attrs
import structlog

from eventlog import Context, EventLog, Unavailable
from eventlog.commands import Commands
from httpkit.errors import HttpkitError
from httpkit.problems import NotPermitted
from httpkit.routes import Caller, Scope
from httpkit.server.guard import SHARED_CALLER, same_secret
from projections.store import Queryable
from servicekit.access.tokens import (
    COARSE,
    FIND,
    SHARED,
    ClaimPairing,
    PairingOffered,
    Session,
    SessionClosed,
    SessionOpened,
    SessionText,
    Token,
    TokenFull,
    TokenModel,
    TokenRefused,
    TokenText,
    TokenUsed,
    digest,
    token_of,
)

_log = structlog.get_logger(__name__)

REMEMBERED = 0.4
"""Seconds for which the answer on a token is used again."""
PATIENCE = 1.0
"""Seconds for which the log is waited for before the tables are asked."""
_MOST = 4096


@attrs.define(eq=False)
class TokenDirectory:
    """Finds tokens. `log` may be None in a process without a broker; `reader` gives the database with the tables.

    `is_connected` returns whether the broker of the log is connected.
    """

    tokens: TokenModel
    _log: EventLog | None
    _reader: Callable[[], Awaitable[Queryable]]
    _is_connected: Callable[[], bool] = attrs.field(kw_only=True)
    _clock: Callable[[], float] = attrs.field(default=time.monotonic, kw_only=True)
    _known: OrderedDict[str, tuple[float, Token]] = attrs.field(factory=OrderedDict, init=False)
    _looking: dict[str, asyncio.Task[Token | None]] = attrs.field(factory=dict, init=False)

    async def find(self, id_: str) -> Token | None:
        """Return a token, valid or not. Raises StoreUnavailable, AggregateDamaged, LogDamaged, UndecodableCommit."""
        known = self._known.get(id_)
        if known is not None and self._clock() - known[0] < REMEMBERED:
            return known[1]
        looking = self._looking.get(id_)
        if looking is None:
            looking = self._looking[id_] = asyncio.create_task(self._look(id_))
            looking.add_done_callback(lambda _: self._looking.pop(id_, None))
        return await asyncio.shield(looking)

    async def find_newest(self, id_: str) -> Token | None:
        """Return a token as the leader of the log has it: for something that may be too new for a remembered answer."""
        return await self._look(id_, consistent=True)

    async def _look(self, id_: str, *, consistent: bool = False) -> Token | None:
        asked = self._clock()
        token = await self._stored(id_, consistent=consistent)
        known = self._known.get(id_)
        if token is not None and (known is None or known[0] <= asked):
            self._known[id_] = asked, token
            self._known.move_to_end(id_)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return token

    async def _stored(self, id_: str, *, consistent: bool) -> Token | None:
        if self._log is not None and self._is_connected():
            try:
                async with asyncio.timeout(PATIENCE):
                    commit = await self._log.last(self.tokens.decider.aggregate(id_), consistent=consistent)
            except (Unavailable, TimeoutError) as error:
                _log.debug("token read from the tables", reason=str(error) or "the log does not answer")
            else:
                state: Token | None = None if commit is None else commit.state
                return state
        row = await (await self._reader()).fetch_one(FIND, id_)
        return None if row is None else token_of(row)


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
    """See `httpkit.routes.Access`. `shared` is the token of the setting `auth_token`, which has all rights."""

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
        session_text = self.parse(cookie)
        if session_text is None:
            return None
        now = self.now()
        token = await self.directory.find(session_text.token)
        # The session may have been opened a moment ago, on another process.
        if token is None or token.session(session_text.id, now) is None:
            token = await self.directory.find_newest(session_text.token)
        if token is None or not token.is_valid(now):
            return None
        session = token.session(session_text.id, now)
        if session is None or not same_secret(self.digest_of(session_text), session.digest):
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
        command = SessionOpened(session=made.id, digest=self.digest_of(made), expires_at=end, at=now)
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
        command = SessionClosed(session=session, at=self.now())
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
            await self.commands.execute(self.directory.tokens.decider, id_, TokenUsed(at=at))
        except Exception as error:  # noqa: BLE001 - a request is not refused because its token's use cannot be noted
            _log.info("use of a token not noted", token=id_, reason=str(error))


CODE = timedelta(minutes=5)
"""The time for which a code can be used."""
DEVICE = timedelta(days=90)
"""The longest time of a device's session, which also ends with the token."""


class PairingRefused(HttpkitError):
    """A code signs no device in."""

    status = HTTPStatus.FORBIDDEN


class NoSuchSession(HttpkitError):
    """The token has no open session with this id."""

    status = HTTPStatus.NOT_FOUND


@attrs.frozen(kw_only=True)
class Offer:
    """A code for one device. `id` is the id of the session that it opens; the code is for no log."""

    id: str
    code: str = attrs.field(repr=False)
    scope: Scope
    expires_at: datetime


@attrs.frozen(kw_only=True)
class SignedIn:
    """A device that was signed in: its session, the value of its cookie, and the longest time of that in seconds."""

    session: Session
    cookie: str = attrs.field(repr=False)
    seconds: int


class Devices:
    """The devices of the holders of tokens. Each method raises the errors of `Commands.execute` and of `TokenDirectory.find`."""

    def __init__(self, access: ServiceAccess) -> None:
        self._access = access
        self._decider = access.directory.tokens.decider

    async def offer(self, caller: Caller, name: str, scope: Scope | None = None) -> Offer:
        """Return a code for a device. Without a scope the device may write, if the caller may.

        Raises NotPermitted for a scope beyond the caller's, TokenRefused for a token that is not valid any more, and
        TokenFull for one with too many codes with more rights.
        """
        assert caller.token is not None, "a code is offered by the holder of a token"
        device_scope = scope or min(caller.scope, Scope.WRITE, key=list(Scope).index)
        if not caller.scope.covers(device_scope):
            raise NotPermitted(f"a device cannot get the scope {device_scope}: {caller.name!r} has the scope {caller.scope}")
        now, session_text = self._access.now(), SessionText.make(caller.token)
        end = now + CODE
        command = PairingOffered(
            pairing=session_text.id,
            digest=self._access.digest_of(session_text),
            name=name,
            scope=device_scope.value,
            expires_at=end,
            at=now,
        )
        await self._access.commands.execute(self._decider, caller.token, command, Context(actor=caller.actor))
        return Offer(id=session_text.id, code=session_text.reveal(), scope=device_scope, expires_at=end)

    async def claim(self, code: str) -> SignedIn:
        """Sign a device in by a code, which is used up then. Raises PairingRefused, TokenFull, which leaves the code unused."""
        refused = PairingRefused("this code is unknown, was used already or has expired: ask for a new one")
        pairing_text, now, access = self._access.parse(code), self._access.now(), self._access
        if pairing_text is None:
            raise refused
        token = await access.directory.find_newest(pairing_text.token)
        offered = None if token is None or not token.is_valid(now) else token.pairing(pairing_text.id, now)
        if token is None or offered is None or not same_secret(access.digest_of(pairing_text), offered.digest):
            raise refused
        session_text = attrs.evolve(SessionText.make(pairing_text.token), id=offered.id)
        end = end_of(token, now + DEVICE)
        command = ClaimPairing(pairing=offered.id, digest=access.digest_of(session_text), expires_at=end, at=now)
        try:
            outcome = await access.commands.execute(self._decider, token.id, command, Context(actor=access.caller(token).actor))
        except TokenFull:
            raise
        except TokenRefused as error:
            raise refused from error
        session = outcome.state.session(offered.id, now)
        assert session is not None, "the command opened it"
        return SignedIn(session=session, cookie=session_text.reveal(), seconds=int((end - now).total_seconds()))

    async def sessions(self, caller: Caller) -> Sequence[Session]:
        """Return the open sessions of the caller's token, the newest last."""
        token = None if caller.token is None else await self._access.directory.find_newest(caller.token)
        now = self._access.now()
        return [] if token is None else [one for one in token.sessions if now < one.expires_at]

    async def end(self, caller: Caller, id_: str) -> None:
        """End a session of the caller's token, or withdraw a code. Raises NoSuchSession, NotPermitted."""
        token = None if caller.token is None else await self._access.directory.find_newest(caller.token)
        now = self._access.now()
        found = None if token is None else token.session(id_, now) or token.pairing(id_, now)
        if token is None or found is None:
            raise NoSuchSession("there is no open session with this id")
        scope = Scope(found.scope or token.scope)
        if not caller.scope.covers(scope):
            raise NotPermitted(f"a session with the scope {scope} is not ended by one with the scope {caller.scope}")
        await self._access.end_session(id_, caller)
