"""A commit as the message that goes to the broker: subject, headers with its guard and its unique id, and its payload."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256

import attrs

from eventlog.commit import Proposal
from eventlog.errors import TooLarge
from eventlog.registry import Registry
from eventlog.support.chain import FOLLOWS, GUARD, fingerprints, links

_ROOM_FOR_BATCH_HEADERS = 128


@attrs.define(eq=False)
class Message:
    """A proposal as it goes to the broker, not to be changed. `headers` are lines on the wire: message id, guard, trace context.

    Of two messages with one `unique` (empty: none) the broker stores one; they must not be in one batch.
    """

    subject: str
    expected: int
    id: str
    headers: bytes
    data: bytes
    unique: str = ""
    _digest: str = attrs.field(default="", init=False, repr=False)
    """Empty until it is made: that takes a part of the time in which the broker stores the message."""

    @property
    def size(self) -> int:
        """Bytes of it in a batch."""
        return len(self.headers) + len(self.data) + _ROOM_FOR_BATCH_HEADERS

    @property
    def digest(self) -> str:
        """The digest of the commit as it is stored."""
        if not self._digest:
            _make_digests((self,))
        return self._digest


def digest_soon(messages: Sequence[Message]) -> None:
    """Make the digests of messages in the next turn of the event loop: this one sends them, and the broker needs longer."""
    asyncio.get_running_loop().call_soon(_make_digests, messages)


def _make_digests(messages: Sequence[Message]) -> None:
    """Make the missing digests of messages: of many at once in less time."""
    missing = [message for message in messages if not message._digest]  # noqa: SLF001 - a part of the class
    for message, digest in zip(missing, links(fingerprints(missing)), strict=True):
        message._digest = digest.decode()  # noqa: SLF001 - a part of the class


def encode(
    registry: Registry, proposal: Proposal, max_payload: int, sealed: Sequence[str | None] = (), *, after: Message | None = None
) -> Message:
    """The message of a proposal; `sealed` are the personal fields of its events.

    With `after` it is for a batch, right after that message of its aggregate: then the proposal's own guard has no meaning.
    Raises TooLarge above `max_payload` bytes, ValueError for a value that no header can carry.
    """
    commit, subject = proposal.commit, proposal.aggregate.subject
    unique = commit.id if proposal.key is None else f"key-{sha256(proposal.key.encode()).hexdigest()[:32]}"
    guard = f"{GUARD}: {proposal.expected}" if after is None else f"{FOLLOWS}: previous"
    headers = f"Nats-Msg-Id: {_value(unique)}\r\n{guard}\r\n"
    if (traceparent := commit.traceparent) is not None:
        headers += f"traceparent: {_value(traceparent)}\r\n"
    body = registry.encode(commit, sealed, proposal.prev if after is None else after.digest)
    message = Message(subject, proposal.expected, commit.id, headers.encode(), body, unique)
    if message.size > max_payload:
        raise TooLarge(
            f"a commit of {len(message.data):,} bytes to {subject} is over what one message may have ({max_payload:,} bytes); "
            "put large bodies into the blob store"
        )
    return message


def _value(text: str) -> str:
    if not (text and text.isascii() and text.isprintable() and text == text.strip()):
        raise ValueError(f"not fit for a header: {text!r}")
    return text
