"""Values of the log: aggregates, commits to be written, commits as they were stored.

A message on the stream is a *commit*: one or more events of one aggregate, in order, with the state of the aggregate after
them. The last message on an aggregate's subject is therefore the aggregate (docs/explanation/event-log.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import attrs
import msgspec

from eventlog.support.chain import CommitBody, CommitLost, EventBody, digest_of, guard_at, has_guard, lost
from eventlog.support.tracing import Trace

_CATEGORY = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


@attrs.frozen(order=True, cache_hash=True)
class AggregateId:
    """Names one aggregate, and with it the one exact subject that all its commits are stored under.

    `category` is `<service>.<aggregate>` (`bank.account`), `id` a single subject token of at most 128 characters out of
    `A-Z a-z 0-9 _ -`. Raises ValueError for anything else: a dot or a wildcard would change what the guard guards.
    """

    category: str = attrs.field(validator=attrs.validators.matches_re(_CATEGORY))
    id: str = attrs.field(validator=attrs.validators.matches_re(_TOKEN))

    @property
    def subject(self) -> str:
        """The subject: `<category>.<id>`."""
        return f"{self.category}.{self.id}"

    @classmethod
    def parse(cls, subject: str) -> AggregateId:
        """The aggregate whose subject this is. Raises ValueError for any other text."""
        category, _, id_ = subject.rpartition(".")
        return cls(category, id_)


class Context(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # a Struct, as each event that is read has one
    """The context of a command. Each event of the command has it.

    `key` is the caller's idempotency key and `fingerprint` a digest of its request. `correlation` is the id of the first request,
    `causation` the id of the direct cause. `traceparent` is the W3C trace context, carried as a message header. `actor` names the
    caller of the command: `token:<id>:<name>`, `worker:<id>`, `local`; None is the service itself.
    """

    key: str | None = None
    fingerprint: str | None = None
    correlation: str | None = None
    causation: str | None = None
    traceparent: str | None = None
    actor: str | None = None

    def without_key(self) -> Context:
        """The same context without the idempotency key, for commands of one request that each take effect alone."""
        return msgspec.structs.replace(self, key=None, fingerprint=None)

    def in_new_span(self) -> Context:
        """The same context, in a new span of its trace, for work that follows from earlier work."""
        trace = Trace.parse(self.traceparent)
        return self if trace is None else msgspec.structs.replace(self, traceparent=str(trace.child()))


def context_of(event: EventBody) -> Context:
    """The context of a stored event, without the trace."""
    return Context(
        key=event.key,
        fingerprint=event.fingerprint,
        correlation=event.correlation,
        causation=event.causation,
        actor=event.actor,
    )


@attrs.frozen
class NewEvent:
    """An event that is to be written: an instance of a registered event class, and the context it arose in."""

    data: Any
    context: Context = attrs.field(factory=Context)


@attrs.frozen(kw_only=True)
class NewCommit:
    """A commit to be written to one aggregate: a unique id, the time (aware, UTC), events in order, the state after them.

    Two different contents must never share an id: the broker may drop the second one as a repetition.
    """

    id: str
    at: datetime
    events: tuple[NewEvent, ...] = attrs.field(validator=attrs.validators.min_len(1))
    state: Any

    @property
    def traceparent(self) -> str | None:
        """The trace context of the stored commit: from its first event that has one."""
        for event in self.events:
            if event.context.traceparent is not None:
                return event.context.traceparent
        return None


@attrs.frozen(kw_only=True)
class Proposal:
    """A commit, the aggregate it belongs to, and the guard: there is no way to write without one.

    `expected` is the sequence of the aggregate's last commit, 0 if it must not exist yet; `prev` is the digest of that
    commit (`Commit.digest`, `Appended.digest`), None if there is none. One without the other raises ValueError. Of several
    proposals with one `key` within the stream's `duplicate_window` one is stored, whatever their aggregates.
    """

    aggregate: AggregateId
    expected: int = attrs.field(validator=attrs.validators.ge(0))
    commit: NewCommit
    prev: str | None = attrs.field(default=None)
    key: str | None = None

    @prev.validator
    def _check(self, _: object, prev: str | None) -> None:
        if (prev is None) != (self.expected == 0):
            raise ValueError(f"a proposal after sequence {self.expected} of {self.aggregate.subject} with prev={prev!r}")


@attrs.frozen
class Appended:
    """The stream sequence under which a commit is stored, and whether it had been stored by an earlier try.

    `digest` belongs to the commit as it is stored, for the next proposal of its aggregate.
    """

    sequence: int
    replayed: bool = False
    digest: str | None = attrs.field(default=None, eq=False)


_KEY = b'"key'
"""How the member with a key begins on the wire, if there is one; without the last quotation mark it is found in half the time."""
_BEGIN, _END = b'{"id":"', b"}}"
"""Of each commit that `Registry.encode` has made."""
_NOT_READ: Any = object()


class Position(msgspec.Struct, frozen=True, order=True, gc=False):
    """The place of an event: stream sequence of its commit and index in it (0 for the first). Text: `17` or `17.2`."""

    sequence: int
    index: int = 0

    def __str__(self) -> str:
        return f"{self.sequence}.{self.index}" if self.index else str(self.sequence)

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position that a text names. Raises ValueError if it names none."""
        if not re.fullmatch(r"[0-9]{1,19}(\.[0-9]{1,6})?", text):
            raise ValueError(f"not a position in the log: {text!r}")
        sequence, _, index = text.partition(".")
        return cls(int(sequence), int(index or 0))


class RecordedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event as it was stored, lifted to the newest version of its type.

    If personal fields are `sealed`, they are empty in `data`: `EventLog.decrypt` opens them.
    """

    position: Position
    type: str
    data: Any
    context: Context
    sealed: str | None = None


class CommitDecoder(Protocol):
    """Reads the parts of a stored commit: the registry of its types (`eventlog.registry.Registry`)."""

    def decode_body(self, commit: Commit) -> CommitBody:
        """The envelope. Raises UndecodableCommit."""

    def decode_events(self, commit: Commit) -> Sequence[RecordedEvent]:
        """The events. Raises UndecodableCommit."""

    def decode_state(self, commit: Commit) -> Any:
        """The state. Raises UndecodableCommit."""


class Commit(msgspec.Struct, gc=False, eq=False):
    """A commit as it was stored, at one sequence of the stream.

    Decoding is lazy, since most readers look at a part only: `events` are decoded at each access, the state at the first. Both
    raise UndecodableCommit where the bytes do not fit the registered types. `headers` is the header block as it was on the wire.
    """

    sequence: int
    subject: str
    data: bytes
    registry: CommitDecoder
    headers: bytes | None = None
    _body: CommitBody | None = None
    _state: Any = _NOT_READ

    def __repr__(self) -> str:
        return f"Commit({self.sequence}, {self.subject!r}, {self.data!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Commit) and (self.sequence, self.subject, self.data) == (
            other.sequence,
            other.subject,
            other.data,
        )

    def __hash__(self) -> int:
        return hash((self.sequence, self.subject))

    @property
    def body(self) -> CommitBody:
        """The commit as it is on the wire: events and state still encoded."""
        if self._body is None:
            self._body = self.registry.decode_body(self)
        return self._body

    def may_have(self, event_type: str) -> bool:
        """Return False if no event can have this type. Readers that look for rare events skip decoding.

        Return True for bytes that are not a well-formed commit.
        """
        return b'"%b' % event_type.encode() in self.data or not self._has_outline

    @property
    def may_have_keys(self) -> bool:
        """False if no event can have an idempotency key: see `may_have`."""
        return _KEY in self.data or not self._has_outline

    @property
    def _has_outline(self) -> bool:
        return self.data.startswith(_BEGIN) and self.data.endswith(_END)

    @property
    def id(self) -> str:
        """The commit's own id."""
        return self.body.id

    @property
    def at(self) -> datetime:
        """When it was decided: aware, UTC."""
        return self.body.at

    @property
    def digest(self) -> str:
        """The digest of the stored bytes, computed at each access: the aggregate's next commit carries it as `prev`."""
        return digest_of(self.subject, self.data)

    @property
    def lost(self) -> CommitLost | None:
        """The event of a tombstone, which stands for a commit that was lost; None in every other commit."""
        return lost(self.data)

    @property
    def prev(self) -> str | None:
        """The digest of the aggregate's previous commit; None in the first one."""
        return self.body.prev

    @property
    def is_guarded(self) -> bool:
        """Whether it was appended under a guard. Messages that were published without the event log have none."""
        return has_guard(self.headers)

    @property
    def guard(self) -> int | None:
        """The sequence of the aggregate's previous commit by the guard it was stored under, 0 for none; None: no guard."""
        return guard_at(self.sequence, self.headers)

    @property
    def trace(self) -> Trace | None:
        """The span in which it was decided, if any; for several commands in one commit the first one's."""
        _, found, rest = (self.headers or b"").partition(b"\r\ntraceparent:")
        return Trace.parse(rest.partition(b"\r\n")[0].strip().decode(errors="replace")) if found else None

    @property
    def consequence(self) -> Context:
        """The context for consequences of this commit: caused by it, in the same trace, for the same request."""
        trace = self.trace
        return Context(
            correlation=next((event.correlation for event in self.body.events if event.correlation is not None), None),
            causation=self.id,
            traceparent=None if trace is None else str(trace),
        )

    @property
    def category(self) -> str:
        """The category of its aggregate."""
        return self.subject.rpartition(".")[0]

    @property
    def aggregate(self) -> AggregateId:
        """The aggregate it belongs to."""
        return AggregateId.parse(self.subject)

    @property
    def events(self) -> Sequence[RecordedEvent]:
        """Its events, in order, in the newest version of their types."""
        return self.registry.decode_events(self)

    @property
    def state(self) -> Any:
        """The state of the aggregate after it, in the newest version of its type."""
        if self._state is _NOT_READ:
            self._state = self.registry.decode_state(self)
        return self._state
