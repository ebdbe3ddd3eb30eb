"""Folding the log, and comparing the result with the live tables: every read model equals a fold of the stream (I3).

The compared form is canonical: tables by name, rows by key, values as JSON with sorted names, from any store. The number of
applied commits of each projection is also compared.

A read model is made from the states in commits, so a fold finds nothing wrong with a state that contradicts the events. An audit
looks for that: it reads the log from its first commit on, checks the links between commits, and folds the events.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import msgspec

from eventlog import EventLog, Head
from eventlog.admin.scrub import CommitChecker, Damage
from eventlog.support.chain import beginning, fingerprints, rolled, text_of
from projections.errors import Behind, MigrationError
from projections.migrations import Migrations
from projections.model import ReadModel, Table
from projections.projector.continuity import Tip, check_against
from projections.projector.projector import Projector
from projections.store import Mark, Reader, Snapshot
from projections.stores.sqlite import SQLiteStore

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
class RowDifference:
    """The first difference of two read models: the first row, by table and key, that they do not share.

    `live` and `fresh` are the row's columns by name, None if it is missing. For the table `checkpoints` the key is the
    projection's name, and the row has the number of applied commits.
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
            if not _same(self.live.get(name), value)
        ]
        return f"{row}: {'; '.join(cells)}"


Run = Callable[[Projector, int], Awaitable[None]]
"""Runs a projector up to a sequence, and may show its progress."""


async def run_silently(projector: Projector, until: int) -> None:
    """Run a projector without progress."""
    await projector.run(until=until)


@asynccontextmanager
async def replayed_copy(
    event_log: EventLog, model: ReadModel, *, until: int, directory: Path | None = None, run: Run = run_silently
) -> AsyncIterator[SQLiteStore]:
    """A store with the read model folded from the log up to sequence `until`; it is removed after the block.

    It is kept in a private directory in `directory` (None: the system's place for temporary files). Raises the errors of
    `Projector.run`.
    """
    with TemporaryDirectory(prefix="fold-", dir=directory) as place:
        async with SQLiteStore(Path(place) / "fold.db") as store:
            await Migrations(store, model).up()
            await store.leave_indexes_out(model.projections)  # it is read by key, if at all
            if until:
                await run(Projector(event_log, store, model), until)
            yield store


@attrs.frozen(kw_only=True)
class Verification:
    """The result of a verification: the sequence up to which both were compared, and the first difference, None: equal.

    `digest` is the running digest of the log that the tables were made from, None at sequence 0. `dump` are the tables in
    short, if they were asked for.
    """

    sequence: int
    difference: RowDifference | None
    digest: str | None = None
    dump: Dump | None = None


async def verify(
    live: Reader, event_log: EventLog, model: ReadModel, *, run: Run = run_silently, dumped: bool = False
) -> Verification:
    """Fold the log up to the position of a read model, and compare row by row, also while the read model is written.

    `dumped`: the result has the digests of the compared tables too. This reads them once more.
    Raises LogDamaged if it does not belong to this log, MigrationError if another version of the program made it, Behind if its
    projections are not at one sequence (they are catching up), Unavailable, StoreUnavailable, StoreDamaged.
    """
    async with live.snapshot() as ours:
        # After the snapshot: a commit that is stored and applied in between would look as if the log had lost it.
        until = await _sequence_of(ours, model, await event_log.head())
        async with replayed_copy(event_log, model, until=until, run=run) as fresh, fresh.snapshot() as theirs:
            difference = await compare_snapshots(ours, theirs, model)
        short = await dump_snapshot(ours, model) if dumped else None
        return Verification(sequence=until, difference=difference, digest=await _digest_of(ours, model), dump=short)


async def _digest_of(snapshot: Snapshot, model: ReadModel) -> str | None:
    """The running digest of the log at the checkpoints, which are at one sequence; None at sequence 0.

    Raises StoreDamaged if the checkpoints contradict each other.
    """
    checkpoints = await snapshot.checkpoints()
    here = [checkpoints[p.name] for p in model.projections if p.name in checkpoints]
    tip = Tip.at(model.stream, here[0].sequence if here else 0, here)
    return text_of(tip.digest) if tip.sequence else None


async def _sequence_of(snapshot: Snapshot, model: ReadModel, head: Head) -> int:
    stored = await snapshot.checkpoints()
    checkpoints = {projection.name: stored.get(projection.name) for projection in model.projections}
    for projection in model.projections:
        checkpoint = checkpoints[projection.name]
        check_against(head, projection.name, checkpoint)
        if checkpoint is not None and checkpoint.version != projection.version:
            raise MigrationError(
                f"projection {projection.name!r} is of version {checkpoint.version}, this program has {projection.version}"
            )
    sequences = {0 if checkpoint is None else checkpoint.sequence for checkpoint in checkpoints.values()}
    if len(sequences) > 1:
        raise Behind(f"the projections of {model.name} are at sequences {min(sequences)} to {max(sequences)}: catching up")
    return max(sequences, default=0)


async def dump(store: Reader, model: ReadModel) -> Dump:
    """The digests of a read model as it is now."""
    async with store.snapshot() as snapshot:
        return await dump_snapshot(snapshot, model)


async def dump_snapshot(snapshot: Snapshot, model: ReadModel) -> Dump:
    """As `dump`, of one moment."""
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


async def compare(live: Reader, fresh: Reader, model: ReadModel) -> RowDifference | None:
    """The first difference between two stores of one read model, None if they are equal. Reads both once, in step."""
    async with live.snapshot() as ours, fresh.snapshot() as theirs:
        return await compare_snapshots(ours, theirs, model)


async def compare_snapshots(ours: Snapshot, theirs: Snapshot, model: ReadModel) -> RowDifference | None:
    """As `compare`, of two moments."""
    for table in _tables(model):
        difference = await _compare_table(ours, theirs, table)
        if difference is not None:
            return difference
    applied, expected = await _applied(ours, model), await _applied(theirs, model)
    for name, count in expected.items():
        if applied.get(name) != count:
            return RowDifference("checkpoints", (name,), {"applied": applied.get(name)}, {"applied": count})
    return None


async def _compare_table(ours: Snapshot, theirs: Snapshot, table: Table) -> RowDifference | None:
    lists = ours.scan(table), theirs.scan(table)
    while True:
        live_rows, fresh_rows = await anext(lists[0], None) or (), await anext(lists[1], None) or ()
        if live_rows != fresh_rows:
            break
        if not live_rows:
            return None
    left, right = _rows(table, live_rows, lists[0]), _rows(table, fresh_rows, lists[1])
    while True:
        live, fresh = await anext(left, None), await anext(right, None)
        if live is None and fresh is None:
            return None
        if _same(live, fresh):
            continue
        if live is None or (fresh is not None and _key(table, fresh) < _key(table, live)):
            live = None
        elif fresh is None or _key(table, live) < _key(table, fresh):
            fresh = None
        row = live or fresh
        assert row is not None
        return RowDifference(table.name, tuple(row[name] for name in table.key), live, fresh)


def _same(first: Any, second: Any) -> bool:
    """Whether two rows, or two values of JSON, mean the same. `true` is not 1, though they are equal in Python."""
    if first != second:
        return False
    if isinstance(first, dict):
        return all(_same(value, second[name]) for name, value in first.items())
    if isinstance(first, list):
        return all(map(_same, first, second))
    return isinstance(first, bool) == isinstance(second, bool)


def _key(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row's key, to be compared as the stores sort it: text by its bytes."""
    return tuple(value.encode() if isinstance(value := row[name], str) else value for name in table.key)


def _tables(model: ReadModel) -> Sequence[Table]:
    return sorted(model.tables, key=lambda table: table.name)


async def _rows(
    table: Table, first: Sequence[tuple[Any, ...]], more: AsyncIterator[Sequence[tuple[Any, ...]]]
) -> AsyncIterator[Mapping[str, Any]]:
    for row in first:
        yield dict(_canonical(table, row))
    async for rows in more:
        for row in rows:
            yield dict(_canonical(table, row))


async def _lines(snapshot: Snapshot, table: Table) -> AsyncIterator[bytes]:
    async for rows in snapshot.scan(table):
        for row in rows:
            yield _encoder.encode([value for _, value in _canonical(table, row)]) + b"\n"


def _canonical(table: Table, row: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The cells of a row, alike from every store: JSON as the value that it stands for, NUL as one that cannot hold it has it."""
    for column, value in zip(table.columns, row, strict=True):
        if column.type == "json" and value is not None:
            yield column.name, _meaning(value)
        else:
            yield column.name, value.replace("\0", "\ufffd") if column.type == "text" and value is not None else value


def _meaning(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # the value differs from the written one, so the comparison reports it
        return text


async def _applied(snapshot: Snapshot, model: ReadModel) -> dict[str, int]:
    checkpoints = await snapshot.checkpoints()
    return {p.name: checkpoints[p.name].applied for p in model.projections if p.name in checkpoints}


# The audit of a log


MOST = 100
"""Findings after which an audit names no more."""
_BATCH = 1000


@attrs.frozen(kw_only=True)
class Audit:
    """Result of an audit up to `sequence`: the findings in order, `digest` as in `Checkpoint`, and where marks differ.

    `diverged` are the sequences between which the log is not the one that the marks were made from.
    """

    sequence: int
    findings: Sequence[Damage]
    digest: str
    diverged: tuple[int, int] | None

    @property
    def problems(self) -> Sequence[str]:
        """The faults, a line each; none if the log is sound."""
        problems = [str(finding) for finding in self.findings]
        if self.diverged is not None:
            begin, end = self.diverged
            problems.append(
                f"the log is not the one that the tables were made from: it differs between sequence {begin} and {end}"
            )
        return problems


async def audit(event_log: EventLog, model: ReadModel, *, until: int, marks: Sequence[Mark] = ()) -> Audit:
    """Audit the log up to sequence `until`: the links between commits, and states against folded events.

    `marks` come from the tables: they may end before `until`. Raises LogDamaged, Unavailable.
    """
    checker, findings = CommitChecker(event_log.at, model.folds), list[Damage]()
    digest, after, diverged = beginning(model.stream), 0, None
    known = {mark.sequence: mark for mark in marks}
    agreed = 0
    lists: Any = event_log.follow(after=0, until=until, batch=_BATCH)
    async with aclosing(lists):
        async for commits in lists:
            prints, begin = fingerprints(commits), 0
            for border in [at for at in range(after + 1, commits[-1].sequence + 1) if at in known] if known else ():
                digest = rolled(digest, prints[begin : border - after])
                begin = border - after
                if text_of(digest) == known[border].digest:
                    agreed = border
                elif diverged is None:
                    diverged = (agreed + 1, border)
            digest = rolled(digest, prints[begin:])
            after = commits[-1].sequence
            problems = await checker.problems(commits, prints)
            findings += [Damage(c.sequence, c.subject, problems[c.sequence]) for c in commits if c.sequence in problems]
    return Audit(sequence=after, findings=findings[:MOST], digest=text_of(digest), diverged=diverged)
