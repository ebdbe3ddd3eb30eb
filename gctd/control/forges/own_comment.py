"""The first line of the tracker's comment: it identifies the comment, and dates the delivery behind the text.

Anybody may comment a pull request. So the line is authenticated with a secret of the forge's webhooks (HMAC, RFC 2104).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence

from gctd.domain.delivery.state import Delivery

_MARKER = re.compile(r"<!-- gctd (?P<repo>[0-9a-f]+) (?P<received>[0-9]{1,20}) (?P<mac>[0-9a-f]{64}) -->")


def marker(delivery: Delivery, secrets: Sequence[str]) -> str:
    """Return the first line of the comment. The first of the secrets authenticates it."""
    at = received(delivery)
    return f"<!-- gctd {delivery.repo_id} {at} {_mac(delivery, at, secrets[0])} -->"


def received(delivery: Delivery) -> int:
    """Microseconds since 1970. Positions in the log would not do: a comment can be older than the log."""
    return round(delivery.received_at.timestamp() * 1_000_000)


def written(body: str, delivery: Delivery, secrets: Sequence[str]) -> int | None:
    """Return the time (see `received`) of the delivery behind a comment on the pull request; None for a comment by others."""
    found = _MARKER.match(body)
    if found is None or found["repo"] != delivery.repo_id:
        return None
    at = int(found["received"])
    valid = [hmac.compare_digest(_mac(delivery, at, secret), found["mac"]) for secret in secrets]
    return at if any(valid) else None


def _mac(delivery: Delivery, at: int, secret: str) -> str:
    text = f"gctd comment {delivery.repo_id} {delivery.number} {at}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
