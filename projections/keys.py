"""Looking up idempotency keys, for `eventlog.commands`: in the tables, when they have the end of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eventlog import Unavailable
from eventlog.commands.loading import KeyUse
from projections.errors import Behind, ProjectorStopped, StoreUnavailable
from projections.model import COMMAND_KEYS, KEYS
from projections.projector.projector import Projector
from projections.queries import Sql
from projections.store import Queryable, Store


async def find_uses(tables: Queryable, keys: Sequence[str]) -> Mapping[str, KeyUse]:
    """The first uses of keys up to the position of a read model. A key without one is left out."""
    by_text = {key: key for key in keys} | {key.replace("\0", "\ufffd"): key for key in keys if "\0" in key}
    if not by_text:
        return {}
    sql = Sql(f"SELECT {', '.join(COMMAND_KEYS.names)} FROM {COMMAND_KEYS.name}")  # noqa: S608 - constants
    sql.any_of("WHERE key IN ({}) ORDER BY sequence DESC", keys)
    rows = await tables.fetch(sql.text, *sql.arguments)
    return {by_text[row["key"]]: KeyUse(**row) for row in rows}


class CommandKeys:
    """Where idempotency keys took effect, for `eventlog.commands`: looked up when the read model has reached far enough."""

    def __init__(self, projector: Projector, store: Store, *, timeout: float = 5.0) -> None:
        """`timeout`: seconds to wait for the read model."""
        self._projector = projector
        self._store = store
        self._timeout = timeout

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse | Unavailable]:
        """Return the uses of keys, looked up when everything up to sequence `reached` is in the read model.

        That sequence has to include the end of the log as it was about a second ago. The broker compares newer keys, see
        `Proposal.key`. Unavailable is in the place of a use that cannot be known, also if a commit of that aggregate cannot be
        read: the key might be in it. Raises Unavailable if none can be known.
        """
        try:
            await self._projector.wait_for(max(reached, await self._projector.end_seen()), self._timeout)
            answers: dict[str, KeyUse | Unavailable] = dict(await find_uses(self._store, keys))
        except (Behind, ProjectorStopped, StoreUnavailable, Unavailable) as error:
            raise _unknown(error) from error
        parked = self._projector.parked.get((KEYS.name, subject))
        if parked is not None:
            unknown = _unknown(f"sequence {parked.sequence} is not applied: {parked.error}")
            answers.update((key, unknown) for key in keys if key not in answers)
        return answers


def _unknown(reason: object) -> Unavailable:
    return Unavailable(f"whether the command has taken effect before cannot be known now, and it is not stored: {reason}")
