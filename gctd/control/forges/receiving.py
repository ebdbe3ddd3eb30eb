"""Takes deliveries of webhooks: checks who signed them, and keeps what they ask for in the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

import attrs
import structlog

from eventlog import Commands, Context
from gctd.control.forges.configured import Forge
from gctd.control.forges.payloads import PushedCommit, pushed_commit, signed_by
from gctd.control.requests.tracker import Tracker
from gctd.domain.delivery import DELIVERY, delivery_id
from gctd.domain.delivery.commands import ReceiveDelivery
from gctd.domain.delivery.events import DeliveryReceived
from gctd.domain.errors import BadInput, NotFound
from gctd.domain.remote.refs import parse_ref

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class Posted:
    """A request to a webhook: kind of forge, event and delivery id by its headers, and its raw body."""

    kind: str
    event: str
    delivery: str
    body: bytes = attrs.field(repr=False)
    signature: str | None = attrs.field(default=None, repr=False)
    token: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class Receipt:
    """The answer to a delivery: its id in the log, None if nothing follows from it, for the reason in `note`."""

    id: str | None
    note: str = ""
    sequence: int = 0


class NotSigned(Exception):
    """No configured forge signed the request."""


class Hooks:
    """The webhooks of all configured forges."""

    def __init__(self, commands: Commands, tracker: Tracker, forges: Mapping[str, Forge]) -> None:
        self._commands = commands
        self._tracker = tracker
        self._forges = forges

    async def take(self, posted: Posted, context: Context) -> Receipt:
        """Keep a delivery. Raises NotSigned, BadInput, Refused (a replay), Unavailable, OutcomeUnknown."""
        forges = [forge for forge in self._forges.values() if forge.kind == posted.kind]
        signers = signed_by(forges, posted.body, signature=posted.signature, token=posted.token)
        if not signers:
            raise NotSigned
        found = pushed_commit(posted.kind, posted.event, posted.body)
        if found is None:
            return Receipt(id=None, note=f"nothing follows from {posted.event or 'this event'}")
        for forge in signers:  # several only if they have the same secret
            taken = await self._kept(forge, posted, found, context)
            if taken is not None:
                return taken
        return Receipt(id=None, note="the repository is not registered here")

    async def _kept(self, forge: Forge, posted: Posted, found: PushedCommit, context: Context) -> Receipt | None:
        """Record a delivery. Return None if its repository is not registered.

        The repository's address has the configured host, never a host of the body.
        """
        try:
            known = await self._tracker.registered(f"https://{forge.host}/{found.path}")
        except (BadInput, NotFound):
            return None
        id_ = delivery_id(forge.host, posted.body)
        received = DeliveryReceived(
            id=id_,
            delivery=posted.delivery,
            forge=forge.host,
            repo_id=known.id,
            repo_url=known.url,
            path=urlsplit(known.url).path.strip("/"),
            ref=parse_ref(found.ref),
            commit_sha=found.commit_sha,
            base=parse_ref(found.base),
            number=found.number,
            at=datetime.now(UTC),
        )
        outcome = await self._commands.execute(DELIVERY, id_, ReceiveDelivery(received=received), context)
        note = "" if outcome.events else "it was delivered before"
        _log.info("delivery taken", id=id_, forge=forge.host, commit=found.commit_sha, note=note)
        return Receipt(id=id_, note=note, sequence=outcome.sequence)
