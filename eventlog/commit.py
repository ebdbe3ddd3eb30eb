"""Values of the log: aggregates, commits to be written, commits as they were stored.

A message on the stream is a *commit*: one or more events of one aggregate, in order, with the state of the aggregate after
them. The last message on an aggregate's subject is therefore the aggregate (DESIGN, section 3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from eventlog.support.trace import Trace

if TYPE_CHECKING:
    from eventlog.registry import Registry

_CATEGORY = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")


@attrs.frozen(order=True, cache_hash=True)
class AggregateId:
    """Names one aggregate, and with it the one exact subject that all its commits are stored under.

    `category` is `<service>.<aggregate>` (`gctd.task`), `id` a single subject token of at most 128 characters out of
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
        """The aggregate whose subject this is. Raises ValueError where it is none."""
        category, _, id_ = subject.rpartition(".")
        return cls(category, id_)


@attrs.frozen(kw_only=True)
class Context:
    """What a command was issued in: travels with each event that it caused.

    `key` is the caller's idempotency key and `fingerprint` a digest of the request it came with; `correlation` is the
    id of the request that all of this began with, `causation` the id of what directly led to it; `traceparent` is the
    W3C trace context, carried as a message header.
    """

    key: str | None = None
    fingerprint: str | None = None
    correlation: str | None = None
    causation: str | None = None
    traceparent: str | None = None

    def in_new_span(self) -> Context:
        """The same, in a new span of its trace: what is done now, as a consequence of what was done before."""
        trace = Trace.parse(self.traceparent)
        return self if trace is None else attrs.evolve(self, traceparent=str(trace.child()))


@attrs.frozen
class NewEvent:
    """An event that is to be written: an instance of a registered event class, and the context it arose in."""

    data: Any
    context: Context = attrs.field(factory=Context)


@attrs.frozen(kw_only=True)
class NewCommit:
    """What is to be written to one aggregate: a unique id, the time (aware, UTC), events in order, the state after them.

    Two different contents must never share an id: the broker may drop the second one as a repetition.
    """

    id: str
    at: datetime
    events: tuple[NewEvent, ...] = attrs.field(validator=attrs.validators.min_len(1))
    state: Any

    @property
    def traceparent(self) -> str | None:
        """The trace context that it is stored with: that of its first event that has one."""
        for event in self.events:
            if event.context.traceparent is not None:
                return event.context.traceparent
        return None


@attrs.frozen(kw_only=True)
class Proposal:
    """A commit, the aggregate it belongs to, and the guard: there is no way to write without one.

    `expected` is the sequence of the aggregate's last commit, 0 where it must not exist yet.
    """

    aggregate: AggregateId
    expected: int = attrs.field(validator=attrs.validators.ge(0))
    commit: NewCommit


@attrs.frozen
class Appended:
    """The stream sequence under which a commit is stored, and whether it had been stored by an earlier try."""

    sequence: int
    replayed: bool = False


_EVENT = {"type": "t", "version": "v", "data": "d", "sealed": "p"}
_KEY = b'"key'
"""How the member with a key begins on the wire, if there is one; without the last quotation mark it is found in half the time."""
_BEGIN, _END = b'{"id":"', b"}}"
"""Of each commit that `Registry.encode` has made."""
_NOT_READ: Any = object()


class EventBody(msgspec.Struct, gc=False, frozen=True, omit_defaults=True, rename=_EVENT):
    """An event on the wire; `sealed` are its personal fields."""

    type: str
    data: msgspec.Raw
    version: int = 1
    key: str | None = None
    fingerprint: str | None = None
    correlation: str | None = None
    causation: str | None = None
    sealed: str | None = None


class StateBody(msgspec.Struct, gc=False, frozen=True, omit_defaults=True, rename={"version": "v", "data": "d"}):
    """The state of an aggregate on the wire; its type is the category of the aggregate."""

    data: msgspec.Raw
    version: int = 1


class CommitBody(msgspec.Struct, gc=False, frozen=True):
    """A commit on the wire."""

    id: str
    at: datetime
    events: list[EventBody]
    state: StateBody


@attrs.frozen(order=True)
class Position:
    """Where an event stands: stream sequence of its commit and index in it (0 for the first). Text: `17` or `17.2`."""

    sequence: int
    index: int = 0

    def __str__(self) -> str:
        return f"{self.sequence}.{self.index}" if self.index else str(self.sequence)

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position that a text names. Raises ValueError where it names none."""
        if not re.fullmatch(r"[0-9]{1,19}(\.[0-9]{1,6})?", text):
            raise ValueError(f"not a position in the log: {text!r}")
        sequence, _, index = text.partition(".")
        return cls(int(sequence), int(index or 0))


@attrs.frozen
class RecordedEvent:
    """An event as it was stored, lifted to the newest version of its type.

    Where personal fields are `sealed`, those of `data` are empty: `EventLog.reveal` opens them.
    """

    position: Position
    type: str
    data: Any
    context: Context
    sealed: str | None = None


class Commit(msgspec.Struct, gc=False, eq=False):
    """A commit as it was stored, at one sequence of the stream.

    Decoding is lazy, since most readers look at a part only: `events` are decoded at each access, the state at the first. Both
    raise UndecodableCommit where the bytes do not fit the registered types. `headers` is the header block as it was on the wire;
    it is looked at only where the trace is asked for.
    """

    sequence: int
    subject: str
    data: bytes
    registry: Registry
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
        """False where surely no event of it is of that type: who looks for few in many commits need not decode the rest.

        What does not have the outline of a commit may have anything.
        """
        return b'"%b' % event_type.encode() in self.data or not self._has_outline

    @property
    def may_have_keys(self) -> bool:
        """False where surely no event of it bears an idempotency key, as with `may_have`."""
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
    def trace(self) -> Trace | None:
        """The span in which it was decided, where it was decided in one; of several commands in one commit that of the first."""
        _, found, rest = (self.headers or b"").partition(b"\r\ntraceparent:")
        return Trace.parse(rest.partition(b"\r\n")[0].strip().decode(errors="replace")) if found else None

    @property
    def consequence(self) -> Context:
        """The context of what this commit leads to: caused by it, in the same trace, for the same request."""
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
