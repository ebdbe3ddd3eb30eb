"""Tokens at the gateway: the services issue them whose read models it has. This process keeps the sessions of browsers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import attrs

from httpkit import SHARED_CALLER, Caller, same_secret
from servicekit.access import SESSION, SessionText, TokenDirectory, TokenText, caller_with, digest, holder

MOST_SESSIONS = 10_000
"""Sessions that a process keeps; a further one ends the oldest."""


def _now() -> datetime:
    return datetime.now(UTC)


@attrs.frozen
class _Open:
    caller: Caller
    digest: str
    end: datetime


class GatewayAccess:
    """See `httpkit.routes.Access`. `directories` by the name of the service that issued the tokens.

    The gateway writes to no log: a session is known to the process that opened it, and ends with that process at the latest.
    """

    def __init__(
        self,
        directories: Mapping[str, TokenDirectory],
        *,
        shared: str | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._directories = directories
        self._shared = shared
        self._now = now
        self._open: OrderedDict[str, _Open] = OrderedDict()

    async def by_token(self, text: str) -> Caller | None:
        """See `Access.by_token`."""
        if self._shared is not None and same_secret(text, self._shared):
            return SHARED_CALLER
        given = TokenText.parse(text)
        directory = None if given is None else self._directories.get(given.service)
        if directory is None:
            return None
        token = await holder(directory, text, self._now())
        return None if token is None else caller_with(token, directory.tokens.service)

    async def by_session(self, cookie: str) -> Caller | None:
        """See `Access.by_session`."""
        given = SessionText.parse(cookie)
        found = None if given is None else self._open.get(given.id)
        if given is None or found is None or not same_secret(digest(given.secret), found.digest) or self._now() >= found.end:
            return None
        caller = found.caller
        if caller.realm is None:
            return caller
        assert caller.token is not None, "a session is opened with a token"
        token = await self._directories[caller.realm].find(caller.token)
        return caller if token is not None and token.is_valid(self._now()) else None

    async def open_session(self, caller: Caller) -> tuple[str, int]:
        """See `Access.open_session`."""
        assert caller.token is not None, "a session is opened with a token"
        made, time = SessionText.make(caller.token), SESSION
        self._open[made.id] = _Open(attrs.evolve(caller, session=made.id), digest(made.secret), self._now() + time)
        while len(self._open) > MOST_SESSIONS:
            self._open.popitem(last=False)
        return made.reveal(), int(time / timedelta(seconds=1))

    async def close_session(self, cookie: str) -> None:
        """See `Access.close_session`."""
        given = SessionText.parse(cookie)
        if given is not None and await self.by_session(cookie) is not None:
            del self._open[given.id]

    def is_token(self, text: str) -> bool:
        """See `Access.is_token`."""
        return TokenText.parse(text) is not None
