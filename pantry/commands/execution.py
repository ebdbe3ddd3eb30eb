"""Commands of users on their way to the log: the clock, the ids, and the time that each may take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import attrs

from eventlog import Commands, EventLog, Outcome, OutcomeUnknown, TimerQueue, Unavailable, hex_digits, nothing_sent
from pantry.domain.ledger import RecordMovement
from pantry.domain.product import MovementType, Product, ProductEvent

T = TypeVar("T")

PATIENCE = 1.8
"""Seconds that a command has if somebody waits for it: less than two, so that nothing seems to hang."""
IMPORT_PATIENCE = 120.0
"""Seconds that the commands of one product have in an import."""

ProductOutcome = Outcome[Product, ProductEvent]


@attrs.frozen(kw_only=True)
class NewMovement:
    """A movement to be booked; the quantity in thousandths. `unit`: the unit that the quantity is in, if it is known."""

    ean13: str
    type: MovementType
    quantity: int
    reason: str = ""
    notes: str = ""
    created_by: str = ""
    unit: str | None = None


def _new_id() -> str:
    """A random UUID of version 4 (RFC 9562, section 5.4), at a third of the cost of `uuid.uuid4` and its text."""
    digits = hex_digits()
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Execution:
    """The log and the commands on it. `now` and `new_id` (UUID v4) are the clock and the source of ids.

    `trouble` returns the reason why commands take long, for clients that wait in vain, or an empty text.
    """

    def __init__(
        self,
        log: EventLog,
        commands: Commands,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = _new_id,
        trouble: Callable[[], str] = lambda: "",
    ) -> None:
        self.log = log
        self.commands = commands
        self.now = now
        self.new_id = new_id
        self._trouble = trouble
        self._limits = {seconds: TimerQueue(seconds) for seconds in (PATIENCE, IMPORT_PATIENCE)}

    def record(self, movement: NewMovement, at: datetime, *, keeps_refusal: bool = False) -> RecordMovement:
        """The command that books a movement, or records that the stock does not allow it."""
        return RecordMovement(
            id=self.new_id(),
            ean13=movement.ean13,
            type=movement.type,
            quantity=movement.quantity,
            reason=movement.reason,
            notes=movement.notes,
            created_by=movement.created_by,
            at=at,
            keeps_refusal=keeps_refusal,
            unit=movement.unit,
        )

    async def within(self, patience: float, command: Awaitable[T]) -> T:
        """Return the result of a command, `patience` being PATIENCE or IMPORT_PATIENCE.

        Raises Unavailable if it was not sent to the log in that time, and OutcomeUnknown if it was: it may take effect yet.
        """
        limit = self._limits[patience].limit()
        try:
            with limit:
                return await command
        except TimeoutError as error:
            if not limit.expired:
                raise
            trouble = self._trouble()
            if nothing_sent(error):
                text = (
                    f"the command was not decided within {patience:g} s, and is not stored{trouble and f': {trouble}'}. Repeat it"
                )
                raise Unavailable(text) from error
            text = (
                f"the log has not answered within {patience:g} s{trouble and f' ({trouble})'}: the command may take effect yet. "
                "With an idempotency key it may be repeated; without one, look first whether it took effect"
            )
            raise OutcomeUnknown(text) from error
