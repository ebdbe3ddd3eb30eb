"""The stream of the simulated broker: its records, and each kind of damage that a kill cannot produce.

The rules were measured on nats-server 2.15: a record that cannot be read is not there for every read and still
counted, a start after an unclean stop cuts the stream at such a record, a full disk latches until the next start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs

from eventlog.support.chain import GUARD

_GUARD = f"{GUARD}: ".encode()


@attrs.define(eq=False)
class Record:
    """A stored message. `head` is its header block; `at` the broker's time. Damage makes it unreadable."""

    sequence: int
    subject: str
    head: bytes
    data: bytes
    at: float
    readable: bool = True

    @property
    def id(self) -> str:
        """The value of Nats-Msg-Id; empty if there is none."""
        return header(self.head, b"Nats-Msg-Id: ")

    @property
    def is_first(self) -> bool:
        """Whether it was published as the first one of its aggregate."""
        return header(self.head, _GUARD) == "0"

    @property
    def body(self) -> dict[str, Any]:
        """The commit."""
        found: dict[str, Any] = json.loads(self.data)
        return found


def header(head: bytes, name: bytes) -> str:
    """The value of a header line; empty if there is none."""
    _, found, rest = head.partition(name)
    return rest.partition(b"\r\n")[0].decode() if found else ""


@attrs.define
class Refusal(Exception):
    """The server's error answer to a publish."""

    code: int
    err_code: int
    description: str


class Latched(Exception):
    """The store takes nothing, and the server does not answer."""


@attrs.define(eq=False)
class Lineage:
    """All that was ever stored in a row: cutting or restoring a stream begins another one."""

    incarnation: str
    records: list[Record]
    begun: float
    """When it began, in virtual seconds; the first `shared` records are the same as in the lineage before."""
    shared: int = 0


class Stream:
    """A stream. `stored` is called with each record when it is stored; `replicas` is what the server says of it."""

    def __init__(self, name: str, *, replicas: int, window: float = 120.0) -> None:
        self.name = name
        self.replicas = replicas
        self.stored: Callable[[Record], None] = lambda record: None
        self.latched = False
        """The disk was full: no append is stored or answered until the next start."""
        self.limited = False
        """A limit is reached: appends are refused at once."""
        self._window = window
        self._ids: dict[str, tuple[int, float]] = {}
        self._by_subject: dict[str, list[Record]] = {}
        self._incarnations = 0
        self.lineages: list[Lineage] = []
        self._begin([], 0.0, anew=True)

    @property
    def incarnation(self) -> str:
        """The id that the stream was created with."""
        return self.lineages[-1].incarnation

    @property
    def records(self) -> list[Record]:
        """Its records now."""
        return self.lineages[-1].records

    def _begin(self, records: Sequence[Record], now: float, *, anew: bool) -> None:
        if anew:
            self._incarnations += 1
        lineage = Lineage(f"incarnation-{self._incarnations}", list(records), now, 0 if not self.lineages else len(records))
        self.lineages.append(lineage)
        self._by_subject = {}
        for record in records:
            self._by_subject.setdefault(record.subject, []).append(record)
        self._ids = {record.id: (record.sequence, record.at) for record in records if record.id}

    # Writing

    def publish(self, messages: Sequence[tuple[str, bytes, bytes]], now: float) -> tuple[list[Record], int | None]:
        """Store messages (subject, header block, payload), all or none.

        The records, or none and the sequence of the message that has the id of the only one. Raises Refusal, Latched.
        """
        ids = [header(head, b"Nats-Msg-Id: ") for _, head, _ in messages]
        if len(set(ids)) < len(ids):
            raise Refusal(400, 10201, "atomic publish batch contains duplicate message id")
        for id_ in ids:
            known = self._ids.get(id_)
            if known is not None and now - known[1] < self._window:
                if len(messages) > 1:
                    raise Refusal(400, 10201, "atomic publish batch contains duplicate message id")
                return [], known[0]
        self._check_guards(messages)
        if self.limited:
            raise Refusal(503, 10023, "insufficient resources")
        if self.latched:
            raise Latched
        found = []
        for subject, head, data in messages:
            record = Record(len(self.records) + 1, subject, head, data, now)
            self.records.append(record)
            self._by_subject.setdefault(subject, []).append(record)
            if record.id:
                self._ids[record.id] = (record.sequence, now)
            self.stored(record)
            found.append(record)
        return found, None

    def _check_guards(self, messages: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Of several messages of one subject only the first one may have a guard."""
        subjects = set[str]()
        for subject, head, _ in messages:
            expected = header(head, _GUARD)
            if expected and subject in subjects:
                raise Refusal(400, 10164, "wrong last sequence")
            subjects.add(subject)
            of_subject = self._by_subject.get(subject)
            last = of_subject[-1].sequence if of_subject else 0
            if expected and int(expected) != last:
                raise Refusal(400, 10071, f"wrong last sequence: {last}")

    # Reading: an unreadable record is absent

    def at(self, sequence: int) -> Record | None:
        """The record at a sequence."""
        found = self.records[sequence - 1] if 1 <= sequence <= len(self.records) else None
        return found if found is not None and found.readable else None

    def last(self, subject: str, *, up_to: int | None = None) -> Record | None:
        """The last record of a subject, at or below a sequence."""
        for record in reversed(self._by_subject.get(subject, ())):
            if up_to is None or record.sequence <= up_to:
                return record if record.readable else None
        return None

    def next(self, sequence: int, subject: str | None, end: int | None = None) -> Record | None:
        """The first readable record from a sequence on, of a subject if one is given, below `end`."""
        if subject is None:
            for place in range(max(0, sequence - 1), len(self.records) if end is None else min(end, len(self.records))):
                if self.records[place].readable:
                    return self.records[place]
            return None
        for record in self._by_subject.get(subject, ()):
            if record.sequence >= sequence and record.readable and (end is None or record.sequence <= end):
                return record
        return None

    def counts(self, pattern: str) -> dict[str, int]:
        """How many messages the server counts on each subject that a pattern matches: a subject, or a category with `.*`."""
        return {subject: len(found) for subject, found in self._by_subject.items() if fnmatchcase(subject, pattern)}

    # Damage

    def flip(self, sequence: int) -> None:
        """A bit of a record flips on the disk."""
        self.records[sequence - 1].readable = False

    def scan(self, now: float) -> bool:
        """The start after an unclean stop: the stream is cut at the first record that cannot be read. Whether it was."""
        for record in self.records:
            if not record.readable:
                self.cut(record.sequence - 1, now)
                return True
        return False

    def cut(self, sequence: int, now: float) -> None:
        """All above a sequence is lost, under the same incarnation: a torn tail, or an older backup."""
        self._begin(self.records[:sequence], now, anew=False)

    def restore(self, sequence: int, now: float) -> None:
        """An older backup is restored, as this project does it: under a new incarnation."""
        self._begin(self.records[:sequence], now, anew=True)

    def create_anew(self, now: float) -> None:
        """The stream is deleted and created again."""
        self._begin([], now, anew=True)
