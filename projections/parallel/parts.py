"""Parts of a batch, by aggregate, as they go to another process and come back; and the batch put together again.

The rows of an aggregate's commits depend only on the commits, on the position of each projection, and on the parked commits of
that aggregate (`PartInputs`). So a part can be derived anywhere, repeatedly, and ahead of time, while its inputs stay the same.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any
from zlib import crc32

import attrs
import msgspec

from eventlog import Commit
from eventlog.commands.keys import KeyUse
from projections.model import Change, Delete, Put, ReadModel, Table
from projections.projector.derive import Changes, ChangeSet, derive
from projections.projector.parking import Parking
from projections.store import Parked, Place


@attrs.frozen
class PartInputs:
    """The inputs of a part, in addition to the commits: the commits that each projection has already, and the parked ones."""

    reached: Mapping[str, int]
    parked: Mapping[Place, Parked]


def given(reached: Mapping[str, int], parked: Mapping[Place, Parked], commits: Sequence[Commit]) -> PartInputs:
    """The inputs of some commits."""
    begin = commits[0].sequence
    mine: Mapping[Place, Parked] = {}
    if parked:
        subjects = {commit.subject for commit in commits}
        mine = {place: one for place, one in parked.items() if place[1] in subjects}
    return PartInputs({name: sequence for name, sequence in reached.items() if sequence >= begin}, mine)


def split(commits: Sequence[Commit], count: int) -> Sequence[Sequence[Commit]]:
    """Split commits into `count` parts, all of an aggregate in one, in order: by a hash that is the same everywhere."""
    parts: list[list[Commit]] = [[] for _ in range(count)]
    for commit in commits:
        parts[crc32(commit.subject.encode()) % count].append(commit)
    return parts


def merged(parts: Sequence[ChangeSet]) -> ChangeSet:
    """Put the parts of one batch together, in the order of the log."""
    if len(parts) == 1:
        return parts[0]
    keys = sorted((key for part in parts for key in part.keys), key=attrgetter("sequence"))
    names = dict.fromkeys(name for part in parts for name in part.changes)
    changes = {name: _merged([part.changes[name] for part in parts if name in part.changes]) for name in names}
    return ChangeSet(changes, keys, {place: one for part in parts for place, one in part.parked.items()})


def _merged(parts: Sequence[Changes]) -> Changes:
    pieces = sorted(
        ((sequence, part, end) for part, found in enumerate(parts) for sequence, end in found.runs), key=itemgetter(0)
    )
    changes: list[Change] = []
    runs: list[tuple[int, int]] = []
    begins = [0] * len(parts)
    for sequence, part, end in pieces:
        changes += parts[part].changes[begins[part] : end]
        begins[part] = end
        runs.append((sequence, len(changes)))
    return Changes(changes, runs, sum(part.applied for part in parts))


# Between processes: a private pipe, so marshal and pickle are safe. The most frequent values go the fastest way.


Request = tuple[bytes, bytes]
"""Commits, and the rest: two messages, since putting megabytes together costs as much as making them."""


def request_of(commits: Sequence[Commit], given: PartInputs, now: datetime) -> Request:
    """A part, for `answer_to`."""
    raw = [(commit.sequence, commit.subject, commit.data, commit.headers) for commit in commits]
    others = pickle.dumps((dict(given.reached), dict(given.parked), now))
    return marshal.dumps(raw, _WITHOUT_REFERENCES), others


def answer_to(model: ReadModel, request: Request) -> bytes:
    """The changes of a part, for `derived_from`; the work of the other process."""
    raw = marshal.loads(request[0])  # noqa: S302 - see above
    reached, parked, now = pickle.loads(request[1])  # noqa: S301 - see above
    commits = [Commit(sequence, subject, data, model.registry, headers) for sequence, subject, data, headers in raw]
    derived = derive(model.projections, reached, commits, Parking(parked, now))
    pieces, rows = [], []
    for name, found in derived.changes.items():
        kinds, together = _apart(found.changes)
        pieces.append((name, found.applied, found.runs, kinds))
        rows.append(together)
    keys = [(key.key, key.fingerprint, key.subject, key.sequence) for key in derived.keys]
    return pickle.dumps((pieces, _packed(rows), keys, dict(derived.parked)), pickle.HIGHEST_PROTOCOL)


def derived_from(answer: bytes) -> ChangeSet:
    """The changes of a part, decoded."""
    pieces, packed, keys, parked = pickle.loads(answer)  # noqa: S301 - see above
    rows = _rows.decode(packed) if isinstance(packed, bytes) else packed
    changes = {
        name: Changes(_together(kinds, together), runs, applied)
        for (name, applied, runs, kinds), together in zip(pieces, rows, strict=True)
    }
    return ChangeSet(changes, [KeyUse(*key) for key in keys], parked)


_WITHOUT_REFERENCES = 2
"""The version of marshal that does not look for repeated objects."""
_rows = msgspec.msgpack.Decoder(list[list[list[tuple[Any, ...]]]])
_packer = msgspec.msgpack.Encoder()

_Rows = list[list[tuple[Any, ...]]]
_Kind = tuple[type[Put | Delete], Table]
_VALUES = {Put: attrgetter("row"), Delete: attrgetter("key")}
_HELD = str | int | float | datetime | None
"""Values that come unchanged through `msgspec`; a Decimal would come as a text."""


def _apart(changes: Iterable[Change]) -> tuple[list[_Kind | None], _Rows]:
    """Pack changes; consecutive changes of one kind and table go together: kind, table, and the rows or keys of each.

    A handler may give something else. It is sent as no change, with None as its kind: the writer refuses the batch, and derives
    it by itself, commit by commit.
    """
    kinds: list[_Kind | None] = []
    rows: _Rows = []
    for (kind, table), together in groupby(changes, key=lambda change: (type(change), getattr(change, "table", None))):
        values = [*map(_VALUES.get(kind, type), together)]
        if isinstance(table, Table) and _are_rows(values):
            kinds.append((kind, table))
            rows.append(values)
        else:
            kinds.append(None)
            rows.append([() for _ in values])
    return kinds, rows


def _are_rows(values: Sequence[Any]) -> bool:
    """Whether all are tuples of values as columns may have."""
    if {*map(type, values)} != {tuple}:
        return False
    return all(issubclass(kind, _HELD) for kind in {*map(type, chain.from_iterable(values))})


def _together(kinds: Sequence[_Kind | None], rows: _Rows) -> list[Any]:
    changes: list[Any] = []
    for kind, together in zip(kinds, rows, strict=True):
        changes += together if kind is None else [kind[0](kind[1], values) for values in together]
    return changes


def _packed(rows: list[_Rows]) -> bytes | list[_Rows]:
    """Rows packed three times as fast as pickle does; as they are if a number is larger than any database holds."""
    try:
        return _packer.encode(rows)
    except OverflowError:
        return rows
