"""The simulated Postgres: the statements of the real store and its lease, on tables, sessions, locks and a clock in memory.

A statement that it does not know is an error: if the store sends another one, the model has to learn it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from projections.model import COMMAND_KEYS, ReadModel, Table
from projections.stores import common
from projections.stores.postgres import election, statements
from tests.simulator.session import Pool, Session
from tests.support.log.virtual_time import OUTSIDE, VirtualTimeLoop

Rows = dict[Any, tuple[Any, ...]]
Effect = Callable[[], object]
_MARKS = f"SELECT stream, sequence, digest, record FROM {common.MARKS} WHERE stream = $1 AND sequence > $2 ORDER BY sequence"
_MOST_KEYS = 64
"""Keys that one statement names at most."""


class Blocked(Exception):
    """A statement has to wait for a lock that another session has."""

    def __init__(self, lock: str) -> None:
        super().__init__(lock)
        self.lock = lock


@attrs.define
class Lease:
    """The row of the lease."""

    token: int
    holder: str
    pid: int
    until: float


class Database:
    """One database of one read model.

    `ahead` are the seconds by which its clock is ahead, `slow` the seconds that a statement may take.
    `committed` is called after each transaction that has changed rows or checkpoints, with the session.
    """

    def __init__(self, loop: VirtualTimeLoop, model: ReadModel) -> None:
        self.loop = loop
        self.ahead = self.slow = 0.0
        self.committed: Callable[[Session], None] = lambda session: None
        self.trace: Callable[[str], None] = lambda text: None
        self.rows: dict[str, Rows] = {table.name: {} for table in model.tables}
        self.checkpoints: dict[str, tuple[Any, ...]] = {}
        self.marks: dict[tuple[str, int], tuple[str, str]] = {}
        self.parked: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.lease: Lease | None = None
        self.leader_lock: int | None = None
        """The pid of the session that has the advisory lock."""
        self.sessions: dict[int, Session] = {}
        self.outside = loop.context_of(OUTSIDE)
        self._pids = 0
        self._locks: dict[str, int] = {}
        self._waiting: dict[str, deque[Effect]] = {}
        self._statements = self._known(model)

    # Sessions

    async def connect(self, process: str) -> Session:
        """A session of a process."""
        self._pids += 1
        session = Session(self.loop, self, process, self._pids)
        self.sessions[session.pid] = session
        await session.round_trip()
        return session

    async def pool(self, process: str) -> Pool:
        """The connections for queries of a process."""
        return Pool(lambda: self.connect(process))

    def end(self, session: Session) -> None:
        """A session ends, by whatever: its transaction is rolled back, its locks are free."""
        if self.sessions.pop(session.pid, None) is None:
            return
        if self.leader_lock == session.pid:
            self.leader_lock = None
        self.rolled_back(session)

    def lose_lock(self) -> None:
        """The leader's lock is lost while its session lives on: a pooler has reset the session."""
        self.leader_lock = None

    def now(self) -> float:
        """Its clock."""
        return self.loop.time() + self.ahead

    # Transactions

    def execute(self, session: Session, sql: str, arguments: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """Run a statement: its rows. Raises Blocked."""
        if sql not in self._statements:
            raise NotImplementedError(sql)
        found: Sequence[Mapping[str, Any]] = self._statements[sql](session, *arguments)
        return found

    def when_free(self, lock: str, effect: Effect) -> None:
        """Call `effect` when a lock is free."""
        self._waiting.setdefault(lock, deque()).append(effect)

    def commit(self, session: Session) -> None:
        """Make the changes of a transaction visible, and tell the listeners."""
        changes, news = session.changes, session.news
        session.changes, session.news = [], []
        for change in changes:
            change()
        if changes:
            self.committed(session)
        self._unlock(session)
        for channel, text in news:
            for other in list(self.sessions.values()):
                other.hear(channel, text)

    def rolled_back(self, session: Session) -> None:
        """Forget the changes of a transaction."""
        session.changes, session.news = [], []
        self._unlock(session)

    def _lock(self, session: Session, name: str) -> None:
        owner = self._locks.setdefault(name, session.pid)
        if owner != session.pid:
            raise Blocked(name)
        if not session.in_transaction:
            del self._locks[name]

    def _unlock(self, session: Session) -> None:
        for name in [name for name, pid in self._locks.items() if pid == session.pid]:
            del self._locks[name]
            waiting, self._waiting[name] = self._waiting.get(name, deque()), deque()
            for effect in waiting:
                self.loop.call_soon(effect, context=self.outside)

    def _change(self, session: Session, change: Effect) -> None:
        if session.in_transaction:
            session.changes.append(change)
        else:
            change()

    # Statements

    def _known(self, model: ReadModel) -> dict[str, Callable[..., Any]]:
        checkpoints = [_select_checkpoints(locked=locked) for locked in (False, True)]
        columns = ", ".join(common.PARKED_COLUMNS)
        known: dict[str, Callable[..., Any]] = {
            "SELECT current_schema()": lambda _: [{"name": "public"}],
            f"SELECT pg_advisory_xact_lock({election.KEY})": lambda _, what: [{"lock": what}],
            statements._TABLES: lambda _, *__: [],
            statements._SYSTEM_TABLES: lambda _: [],
            statements._FOREIGN: lambda _: [{"foreign": False}],
            statements._VERSION: lambda _: [{"version": 1, "dirty": False, "taken_back": False}],
            statements._COLUMNS: lambda _, name: _columns(model, name),
            election._TRY: self._try_lock,
            statements._TAKE: self._take_lease,
            statements.renewal("$1"): self._renew,
            statements._LOOK.format(key=election.KEY): self._look,
            statements._END: self._end_leader,
            checkpoints[0]: lambda session: self._read_checkpoints(session, locked=False),
            checkpoints[1]: lambda session: self._read_checkpoints(session, locked=True),
            statements._MOVE: self._move,
            f"SELECT {columns} FROM {common.PARKED} ORDER BY projection, sequence": self._read_parked,
            f"DELETE FROM {common.PARKED} WHERE projection = $1 AND subject = $2": self._unpark,
            _MARKS: self._read_marks,
        }
        for table in model.tables:
            known[statements._upsert(table)] = self._upsert(table)
            known[statements._delete(table)] = self._delete(table)
            known[f"SELECT * FROM {table.name} WHERE {table.key[0]} = $1"] = self._select(table)
        for count in range(1, _MOST_KEYS + 1):
            places = ", ".join(f"${number}" for number in range(1, count + 1))
            columns = ", ".join(COMMAND_KEYS.names)
            known[f"SELECT {columns} FROM {COMMAND_KEYS.name} WHERE key IN ({places}) ORDER BY sequence DESC"] = self._select_keys
        return known

    def _try_lock(self, session: Session, _: str) -> Any:
        if self.leader_lock is None:
            self.leader_lock = session.pid
        return [{"got": self.leader_lock == session.pid}]

    def _take_lease(self, session: Session, holder: str) -> Any:
        self._lock(session, "lease")
        token = self.lease.token + 1 if self.lease is not None else 1
        self.lease = Lease(token, holder, session.pid, self.now() + statements.SECONDS)
        session.token = token
        self.trace(f"{session.process} leads with token {token}")
        return [{"token": token}]

    def _renew(self, session: Session, token: int) -> Any:
        self._lock(session, "lease")
        found = self.lease
        if found is None or found.token != token:
            return []
        found.until = self.now() + statements.SECONDS
        return [{"renewed": True}]

    def _look(self, session: Session, _: str) -> Any:
        found = self.lease
        if found is None or found.pid != self.leader_lock:
            return []
        return [{"holder": found.holder, "over": self.now() - found.until}]

    def _end_leader(self, session: Session) -> Any:
        found = self.lease
        if found is not None and found.until < self.now() and found.pid in self.sessions:
            self.trace(f"{session.process} ends the session of the leader")
            self.sessions[found.pid].kill()
        return []

    def _read_checkpoints(self, session: Session, *, locked: bool) -> Any:
        if locked and self.checkpoints:
            self._lock(session, "checkpoints")
        columns = common.CHECKPOINT_COLUMNS
        return [dict(zip(columns, (name, *values), strict=True)) for name, values in self.checkpoints.items()]

    def _move(self, session: Session, token: int, *values: Any) -> Any:
        """Postgres runs every part of the statement, whether the lease was renewed or not: the rows tell."""
        projections, versions, incarnations, sequences, applied, records, digests, *rest = values
        streams, marked, mark_digests, mark_records, channel, text = rest
        self._lock(session, "checkpoints")
        renewed = self._renew(session, token)
        rows = zip(versions, incarnations, sequences, applied, records, digests, strict=True)
        moved = dict(zip(projections, rows, strict=True))
        marks = dict(zip(zip(streams, marked, strict=True), zip(mark_digests, mark_records, strict=True), strict=True))

        def change() -> None:
            self.checkpoints.update(moved)
            self.marks = {**marks, **self.marks}

        self._change(session, change)
        session.news.append((channel if renewed else "", text))
        return renewed

    def _read_parked(self, _: Session) -> Any:
        rows = sorted(self.parked.values(), key=lambda row: (row[0], row[2]))
        return [dict(zip(common.PARKED_COLUMNS, row, strict=True)) for row in rows]

    def _unpark(self, session: Session, projection: str, subject: str) -> Any:
        self._change(session, lambda: self.parked.pop((projection, subject), None))
        return []

    def park(self, session: Session, rows: Sequence[tuple[Any, ...]]) -> None:
        """Copy rows into the table of parked aggregates."""
        for row in rows:
            self._change(session, lambda row=row: self.parked.__setitem__((row[0], row[1]), row))  # type: ignore[misc]

    def _read_marks(self, _: Session, stream: str, above: int) -> Any:
        found = sorted((place, values) for place, values in self.marks.items() if place[0] == stream and place[1] > above)
        return [(stream, sequence, *values) for (_, sequence), values in found]

    def _upsert(self, table: Table) -> Callable[..., Any]:
        rows = self.rows[table.name]

        def upsert(session: Session, *row: Any) -> Any:
            key = table.key_of(row)
            self._change(session, lambda: rows.__setitem__(key, row))
            return []

        return upsert

    def _delete(self, table: Table) -> Callable[..., Any]:
        rows = self.rows[table.name]

        def delete(session: Session, *columns: Sequence[Any]) -> Any:
            for key in zip(*columns, strict=True):
                self._change(session, lambda key=key: rows.pop(key if len(key) > 1 else key[0], None))  # type: ignore[misc]
            return []

        return delete

    def _select(self, table: Table) -> Callable[..., Any]:
        rows = self.rows[table.name]

        def select(_: Session, value: Any) -> Any:
            row = rows.get(value)
            return [] if row is None else [dict(zip(table.names, row, strict=True))]

        return select

    def _select_keys(self, _: Session, *keys: str) -> Any:
        rows = sorted(self.rows[COMMAND_KEYS.name].values(), key=lambda row: row[1], reverse=True)
        return [dict(zip(COMMAND_KEYS.names, row, strict=True)) for row in rows if row[0] in keys]


def _select_checkpoints(*, locked: bool) -> str:
    """As `statements.read_checkpoints` asks."""
    return f"SELECT {', '.join(common.CHECKPOINT_COLUMNS)} FROM {common.CHECKPOINTS}{' FOR UPDATE' if locked else ''}"


def _columns(model: ReadModel, quoted: str) -> Any:
    for table in model.tables:
        if quoted == f'"{table.name}"':
            return [
                {
                    "name": column.name,
                    "type": statements.TYPES[column.type],
                    "key": table.key.index(column.name) if column.name in table.key else None,
                }
                for column in table.columns
            ]
    return []


__all__ = ["Blocked", "Database"]
