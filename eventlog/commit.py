"""Values of the log: aggregates, commits to be written, commits as they were stored.

A message on the stream is a *commit*: one or more events of one aggregate, in order, with the state of the aggregate after
them. The last message on an aggregate's subject is therefore the aggregate (docs/explanation/event-log.md).

The registry has the types of events and states. A personal field is declared together with the field that names the person:
`notes: str = attrs.field(metadata=personal(of="created_by"))`. Such fields never reach the broker as they are: `eventlog.privacy`
seals them with a key of that person.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, TypeVar
from weakref import WeakSet

import attrs
import msgspec

from eventlog.errors import NotStorable, StateLost, UndecodableCommit
from eventlog.support.chain import CommitBody, CommitLost, EventBody, StateBody, digest_of, guard_at, has_guard, lost
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


class Commit(msgspec.Struct, gc=False, eq=False):
    """A commit as it was stored, at one sequence of the stream.

    Decoding is lazy, since most readers look at a part only: `events` are decoded at each access, the state at the first. Both
    raise UndecodableCommit where the bytes do not fit the registered types. `headers` is the header block as it was on the wire.
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


T = TypeVar("T")

ERASED = "[erased]"
"""The text of a personal field if the person was erased."""
MISSING = "[key missing]"
"""The text of a personal field if the keyring lacks the person's key, and the log has no erasure of it."""
SEALED = "[sealed]"
"""The text of a personal field for a reader without a keyring."""

_OF = "eventlog.commit.of"


@attrs.frozen
class PersonalFields:
    """The personal fields of one event class, all of them texts: `person` is the one that names whose they are.

    `others` are the fields that are not personal.
    """

    person: str
    names: tuple[str, ...]
    others: tuple[str, ...]

    def of(self, event: Any) -> dict[str, str]:
        """These fields of an event."""
        return {name: getattr(event, name) for name in self.names}

    def without(self, event: T) -> T:
        """The event with these fields empty."""
        kept = {name: getattr(event, name) for name in self.others}
        return type(event)(**kept, **dict.fromkeys(self.names, ""))


def personal(*, of: str) -> Mapping[str, str]:
    """Metadata of an attrs field that is about a person; `of` is the field with the person's name, which is such a field too."""
    return {_OF: of}


def personal_fields(cls: type) -> PersonalFields | None:
    """The personal fields of an event class, None if it has none.

    Raises ValueError if they are of several persons, or where the field that names the person is not among them.
    """
    fields = {field.name: field.metadata[_OF] for field in attrs.fields(cls) if _OF in field.metadata}
    if not fields:
        return None
    persons = set(fields.values())
    if len(persons) > 1 or not persons <= set(fields):
        raise ValueError(f"{cls.__name__}: personal fields are of one person, whom one of them names")
    others = tuple(field.name for field in attrs.fields(cls) if field.name not in fields)
    return PersonalFields(persons.pop(), tuple(fields), others)


def person_of(fields: PersonalFields | None, event: Any) -> str:
    """The person of the personal fields of an event; empty if they belong to no person."""
    return "" if fields is None else plain_name(getattr(event, fields.person))


def plain_name(name: str) -> str:
    """A person's name as it is compared: without case, width and superfluous spaces (NFKC). One person, one key."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split()) if name else ""


Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


@attrs.frozen
class _Type:
    name: str
    version: int
    cls: type
    decoder: msgspec.json.Decoder[Any]
    upcasters: dict[int, Upcaster] = attrs.field(factory=dict)
    personal: PersonalFields | None = None

    def decode(self, version: int, data: msgspec.Raw) -> Any:
        if version == self.version:
            return self.decoder.decode(data)
        fields = msgspec.json.decode(data)
        while version < self.version:
            if version not in self.upcasters:
                raise msgspec.ValidationError(f"{self.name} version {version} has no upcaster")
            fields = self.upcasters[version](fields)
            version += 1
        if version != self.version:
            raise msgspec.ValidationError(
                f"this program knows {self.name} up to version {self.version}: run the program that wrote it, or set the data "
                "aside and begin with an empty log"
            )
        return msgspec.convert(fields, self.cls)


_LOST = "CommitLost"
_OF_EVERY_LOG = {_LOST: _Type(_LOST, 1, CommitLost, msgspec.json.Decoder(CommitLost))}
_NOTHING = b"null"
_REGISTERED: WeakSet[type] = WeakSet()
"""The classes of all registries."""


def check_registered(event: Any, state: Any) -> None:
    """Check the classes of an event and of the state after it. Raises NotStorable if no registry of this program has them."""
    if type(event) not in _REGISTERED:
        raise _unknown_event(event)
    if type(state) not in _REGISTERED:
        raise _unknown_state(state)


def _unknown_event(event: Any) -> NotStorable:
    name = type(event).__name__
    return NotStorable(f'the event class {name} is not registered: put `@REGISTRY.event("{name}")` above it')


def _unknown_state(state: Any) -> NotStorable:
    if state is None:
        return NotStorable("the state after the events is None: `evolve` has no case for one of them, or lacks a `return`")
    return NotStorable(f"the state class {type(state).__name__} is not registered: put `@REGISTRY.state(CATEGORY)` above it")


def _unchanged(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


class Registry:
    """The event and state types of one stream.

    Events are registered under a stable name, states under the category of their aggregate, both with a version that starts at 1.
    An upcaster lifts the plain JSON fields of one version to the next; it is called when an old commit is read. Versions in
    `reads` need none: since then only fields with defaults were added.
    """

    def __init__(self) -> None:
        self._events: dict[str, _Type] = {}
        self._states: dict[str, _Type] = {}
        self._names: dict[type, _Type] = {}
        self._encoder = msgspec.json.Encoder()
        self._body = msgspec.json.Decoder(CommitBody)

    def event(self, name: str, *, version: int = 1, reads: Sequence[int] = ()) -> Callable[[type[T]], type[T]]:
        """Class decorator: registers a frozen attrs class as the newest version of an event type."""
        return lambda cls: self._register(self._events, name, version, reads, cls)

    def state(self, category: str, *, version: int = 1, reads: Sequence[int] = ()) -> Callable[[type[T]], type[T]]:
        """Class decorator: registers a frozen attrs class as the newest version of a category's state."""
        return lambda cls: self._register(self._states, category, version, reads, cls)

    def _register(self, types: dict[str, _Type], name: str, version: int, reads: Sequence[int], cls: type[T]) -> type[T]:
        if name in types or cls in self._names:
            raise ValueError(f"{name} or {cls.__name__} is registered twice")
        personal = personal_fields(cls)
        if personal is not None and types is self._states:
            raise ValueError(f"{cls.__name__}: a state has no personal fields, they are in events alone")
        if not all(1 <= one < version for one in reads):
            raise ValueError(f"{name}: versions before {version} can be read as they are, not {', '.join(map(str, reads))}")
        upcasters: dict[int, Upcaster] = dict.fromkeys(reads, _unchanged)
        types[name] = self._names[cls] = _Type(name, version, cls, msgspec.json.Decoder(cls), upcasters, personal)
        _REGISTERED.add(cls)
        return cls

    def upcast(self, name: str, from_version: int) -> Callable[[Upcaster], Upcaster]:
        """Function decorator: lifts the fields of an event (by name) or a state (by category) to the next version."""

        def register(function: Upcaster) -> Upcaster:
            found = self._events.get(name) or self._states[name]
            if not 1 <= from_version < found.version or from_version in found.upcasters:
                raise ValueError(f"{name}: no upcaster is wanted from version {from_version}")
            found.upcasters[from_version] = function
            return function

        return register

    def known(self) -> Sequence[tuple[str, int, type]]:
        """Name (or category), newest version and class of everything registered: states after events."""
        return [(t.name, t.version, t.cls) for t in (*self._events.values(), *self._states.values())]

    @property
    def categories(self) -> Sequence[str]:
        """The categories of the aggregates whose states are registered."""
        return tuple(self._states)

    def commit(self, sequence: int, subject: str, data: bytes, headers: bytes | None = None) -> Commit:
        """A stored commit that is read with these types: its sequence, the subject of its aggregate, its bytes, its headers."""
        return Commit(sequence, subject, data, self, headers)

    def encode(self, commit: NewCommit, sealed: Sequence[str | None] = (), prev: str | None = None) -> bytes:
        """The bytes of a commit; `sealed` are the personal fields of its events (`eventlog.privacy`).

        `prev` is the digest of the aggregate's previous commit.

        Raises NotStorable for an event or a state whose class is not registered, ValueError for one that JSON cannot carry, for
        example with a number that is not finite, and for personal fields that are not sealed.
        """
        body = CommitBody(
            id=commit.id,
            at=commit.at,
            prev=prev,
            events=[self._encode_event(event, text) for event, text in zip_longest(commit.events, sealed)],
            state=self._encode_state(commit.state),
        )
        return self._encoder.encode(body)

    def _encode_state(self, state: Any) -> StateBody:
        if (type_ := self._names.get(type(state))) is None:
            raise _unknown_state(state)
        return StateBody(self._raw(type_, state), type_.version)

    def _encode_event(self, event: NewEvent, sealed: str | None) -> EventBody:
        type_, context, data = self._type_of(event.data), event.context, event.data
        if type_.personal is not None:
            if sealed is not None:
                data = type_.personal.without(data)
            elif person_of(type_.personal, data):
                raise ValueError(f"{type_.name} has personal fields, and this log was given no keyring to seal them with")
        return EventBody(
            type_.name,
            self._raw(type_, data),
            type_.version,
            context.key,
            context.fingerprint,
            context.correlation,
            context.causation,
            sealed,
            context.actor,
        )

    def personal_fields(self, event: Any) -> PersonalFields | None:
        """The personal fields of an event. Raises NotStorable for one whose class is not registered."""
        return self._type_of(event).personal

    def name_of(self, event: Any) -> str:
        """The name of an event's type. Raises NotStorable for one whose class is not registered."""
        return self._type_of(event).name

    def _raw(self, type_: _Type, value: Any) -> msgspec.Raw:
        try:
            encoded = self._encoder.encode(value)
            if _NOTHING in encoded:  # a number that is not finite is encoded as null, which its type does not read
                type_.decoder.decode(encoded)
        except (TypeError, OverflowError, RecursionError, msgspec.DecodeError) as error:
            raise ValueError(f"{type_.name} cannot be encoded: {error}") from error
        return msgspec.Raw(encoded)

    def _type_of(self, event: Any) -> _Type:
        try:
            return self._names[type(event)]
        except KeyError:
            raise _unknown_event(event) from None

    def decode(self, name: str, version: int, data: bytes) -> Any:
        """An event (by name) or a state (by category) from its stored fields, lifted to the newest version.

        Raises UndecodableCommit.
        """
        return self._decode({**self._events, **self._states}, name, version, msgspec.Raw(data), "sample")

    def decode_body(self, commit: Commit) -> CommitBody:
        """The envelope of a stored commit. Raises UndecodableCommit."""
        try:
            return self._body.decode(commit.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UndecodableCommit(f"sequence {commit.sequence} is not a commit: {error}") from error

    def decode_events(self, commit: Commit) -> Sequence[RecordedEvent]:
        """The events of a stored commit. Raises UndecodableCommit."""
        where = f"sequence {commit.sequence}, event"
        types = self._events if commit.lost is None else _OF_EVERY_LOG
        return tuple(
            RecordedEvent(
                Position(commit.sequence, index),
                event.type,
                self._decode(types, event.type, event.version, event.data, where),
                context_of(event),
                event.sealed,
            )
            for index, event in enumerate(commit.body.events)
        )

    def decode_state(self, commit: Commit) -> Any:
        """The state in a stored commit. Raises UndecodableCommit, StateLost."""
        if (lost := commit.lost) is not None and bytes(commit.body.state.data) == _NOTHING:
            raise StateLost(lost)
        state, where = commit.body.state, f"sequence {commit.sequence}, state"
        return self._decode(self._states, commit.category, state.version, state.data, where)

    @staticmethod
    def _decode(types: dict[str, _Type], name: str, version: int, data: msgspec.Raw, where: str) -> Any:
        if (found := types.get(name)) is None:
            raise UndecodableCommit(f"{where} {name!r}: no such type is registered")
        try:
            return found.decode(version, data)
        except MemoryError:
            raise
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise UndecodableCommit(f"{where} {name!r} version {version}: {error}") from error
        except Exception as error:  # upcasters and classes are the service's, and may raise anything
            raise UndecodableCommit(f"{where} {name!r} version {version}: {error!r}") from error
