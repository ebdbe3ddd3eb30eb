"""Folding the log afresh, and comparing what comes out with what is there: every read model equals a fold of the stream (I3).

What is compared is canonical: tables by name, rows by key, values as JSON with sorted names, whichever store they come from. The
idempotency keys are compared as a table, and of each projection how many commits it has applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import msgspec

from eventlog import EventLog
from projections.migrations import Migrations
from projections.model import ReadModel, Table
from projections.projector import Projector
from projections.sqlite import SQLiteStore
from projections.store import KEYS, Reader, Snapshot

_encoder = msgspec.json.Encoder(order="deterministic")


@attrs.frozen
class TableDigest:
    """How many rows a table has, and the sha-256 of their canonical form."""

    rows: int
    digest: str


@attrs.frozen
class Dump:
    """A read model in short: the digest of everything, of each table, and the commits that each projection has applied."""

    digest: str
    tables: Mapping[str, TableDigest]
    applied: Mapping[str, int]


@attrs.frozen
class Difference:
    """Where two read models part: the first row, by table and key, that they do not have in common.

    `live` and `fresh` are the row's columns by name, None where it is missing. For the table `checkpoints` the key is the
    projection's name and the row says how many commits it has applied.
    """

    table: str
    key: tuple[Any, ...]
    live: Mapping[str, Any] | None
    fresh: Mapping[str, Any] | None

    def __str__(self) -> str:
        row = f"{self.table} {', '.join(map(repr, self.key))}"
        if self.live is None:
            return f"{row}: is missing"
        if self.fresh is None:
            return f"{row}: should not be there"
        cells = [
            f"{name} is {self.live.get(name)!r}, should be {value!r}"
            for name, value in self.fresh.items()
            if self.live.get(name) != value
        ]
        return f"{row}: {'; '.join(cells)}"


@asynccontextmanager
async def folded(
    event_log: EventLog, model: ReadModel, *, until: int, directory: Path | None = None
) -> AsyncIterator[SQLiteStore]:
    """A store with the read model made afresh from the log up to sequence `until`; it is gone after the block.

    It is kept in a directory of its own in `directory` (None: the system's place for temporary files). Raises what
    `Projector.run` does.
    """
    with TemporaryDirectory(prefix="fold-", dir=directory) as place:
        async with SQLiteStore(Path(place) / "fold.db") as store:
            await Migrations(store, model).up()
            if until:
                await Projector(event_log, store, model).run(until=until)
            yield store


async def dump(store: Reader, model: ReadModel) -> Dump:
    """The digests of a read model as it is now."""
    async with store.snapshot() as snapshot:
        whole, tables = hashlib.sha256(), {}
        for table in _tables(model):
            rows, part = 0, hashlib.sha256()
            async for line in _lines(snapshot, table):
                part.update(line)
                rows += 1
            tables[table.name] = TableDigest(rows, part.hexdigest())
            whole.update(f"{table.name} {rows} {part.hexdigest()}\n".encode())
        applied = await _applied(snapshot, model)
        whole.update(_encoder.encode(applied))
        return Dump(whole.hexdigest(), tables, applied)


async def compare(live: Reader, fresh: Reader, model: ReadModel) -> Difference | None:
    """The first difference between two stores of one read model, None where they are equal. Reads both once, in step."""
    async with live.snapshot() as ours, fresh.snapshot() as theirs:
        for table in _tables(model):
            difference = await _compare_table(ours, theirs, table)
            if difference is not None:
                return difference
        applied, expected = await _applied(ours, model), await _applied(theirs, model)
        for name, count in expected.items():
            if applied.get(name) != count:
                return Difference("checkpoints", (name,), {"applied": applied.get(name)}, {"applied": count})
    return None


async def _compare_table(ours: Snapshot, theirs: Snapshot, table: Table) -> Difference | None:
    left, right = _rows(ours, table), _rows(theirs, table)
    while True:
        live, fresh = await anext(left, None), await anext(right, None)
        if live is None and fresh is None:
            return None
        if live == fresh:
            continue
        if live is None or (fresh is not None and _key(table, fresh) < _key(table, live)):
            live = None
        elif fresh is None or _key(table, live) < _key(table, fresh):
            fresh = None
        row = live or fresh
        assert row is not None
        return Difference(table.name, tuple(row[name] for name in table.key), live, fresh)


def _key(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row's key, to be compared as the stores sort it: text by its bytes."""
    return tuple(value.encode() if isinstance(value := row[name], str) else value for name in table.key)


def _tables(model: ReadModel) -> Sequence[Table]:
    return sorted((KEYS, *(table for p in model.projections for table in p.tables)), key=lambda table: table.name)


async def _rows(snapshot: Snapshot, table: Table) -> AsyncIterator[Mapping[str, Any]]:
    async for rows in snapshot.scan(table):
        for row in rows:
            yield dict(_canonical(table, row))


async def _lines(snapshot: Snapshot, table: Table) -> AsyncIterator[bytes]:
    async for rows in snapshot.scan(table):
        for row in rows:
            yield _encoder.encode([value for _, value in _canonical(table, row)]) + b"\n"


def _canonical(table: Table, row: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The cells of a row; JSON as the value that it stands for, since stores may write it otherwise."""
    for column, value in zip(table.columns, row, strict=True):
        yield column.name, _meaning(value) if column.type == "json" and value is not None else value


def _meaning(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # then it differs from what was written, and that is what is looked for
        return text


async def _applied(snapshot: Snapshot, model: ReadModel) -> dict[str, int]:
    checkpoints = await snapshot.checkpoints()
    return {p.name: checkpoints[p.name].applied for p in model.projections if p.name in checkpoints}
