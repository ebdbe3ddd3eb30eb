"""The aggregate of a delivery of a forge's webhook: from the receipt to the status and the comment that answer it.

Its id follows from forge and body. So a delivery that the forge sends again has one effect, and so has a replay under another
delivery id, which no signature covers. Each request to the forge is recorded before it is made (`ReportAttempted`) and after it
succeeded (`ReportDelivered`). A server that finds an attempt without an end looks at the forge first: the request may have had
its effect.
"""

from __future__ import annotations

from hashlib import sha256

from eventlog import Decider
from gctd.domain.delivery.commands import DeliveryCommand, decide
from gctd.domain.delivery.events import DeliveryEvent
from gctd.domain.delivery.state import CATEGORY, Delivery, evolve


def delivery_id(forge: str, body: bytes) -> str:
    """Return the id of the aggregate: 32 hex digits that the forge and the body determine."""
    return sha256(forge.encode() + b"\n" + body).hexdigest()[:32]


DELIVERY: Decider[Delivery, DeliveryCommand, DeliveryEvent] = Decider(CATEGORY, decide, evolve, initial=None)
