"""The tokens of a service as a process knows them: from the log, or from the tables while the broker is away.

The log is asked first, since the tables may be behind: a token that was revoked is never valid because a projection is late.
A damaged log is an error: the tables lack what it cannot give.
The answer on a token is remembered for less than half a second, so that a revocation takes effect within a second everywhere.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import attrs
import structlog

from eventlog import EventLog, Unavailable
from projections.store import Queryable
from servicekit.access.model import FIND, TokenModel, token_of
from servicekit.access.tokens import Token

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
        found = await self._stored(id_, consistent=consistent)
        known = self._known.get(id_)
        if found is not None and (known is None or known[0] <= asked):
            self._known[id_] = asked, found
            self._known.move_to_end(id_)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return found

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
