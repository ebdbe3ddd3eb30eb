"""Looking up idempotency keys, for `eventlog.commands`."""

from __future__ import annotations

from eventlog import Unavailable
from projections.errors import Behind, ProjectorStopped, StoreUnavailable
from projections.projector.projector import Projector
from projections.store import KEYS, KeyRecord, Store


class CommandKeys:
    """Where idempotency keys took effect, for `eventlog.commands`: looked up when the read model has reached far enough."""

    def __init__(self, projector: Projector, store: Store, *, timeout: float = 5.0) -> None:
        """`timeout`: seconds to wait for the read model."""
        self._projector = projector
        self._store = store
        self._timeout = timeout

    async def find(self, key: str, subject: str, reached: int) -> KeyRecord | None:
        """The key's use, looked up when everything up to sequence `reached` is in the read model.

        Raises Unavailable, also where a commit of that aggregate cannot be read: the key might be in it.
        """
        try:
            await self._projector.wait_for(reached, self._timeout)
            found = await self._store.find_key(key)
        except (Behind, ProjectorStopped, StoreUnavailable) as error:
            raise Unavailable(f"whether the command has taken effect before cannot be known now: {error}") from error
        if found is None and (parked := self._projector.parked.get((KEYS.name, subject))) is not None:
            raise Unavailable(
                f"whether the command has taken effect before cannot be known: sequence {parked.sequence} cannot be read: "
                f"{parked.error}"
            )
        return found
