"""The oracle: folds the log by itself, and finds every broken promise at the moment at which it is broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from eventlog.support.chain import link
from projections.model import COMMAND_KEYS, KEYS
from tests.simulator.accounts import BALANCES, CATEGORY, ENTRIES
from tests.simulator.database import Database
from tests.simulator.session import Session
from tests.simulator.stream import Lineage, Record, Stream

_PREFIX = len(CATEGORY) + 1


@attrs.define
class Fold:
    """The fold of a log up to a sequence: rows by table, as the read model has to have them.

    A commit that does not follow the one before it of its account, and all later ones of the account, are not in the rows.
    """

    sequence: int = 0
    balances: dict[str, tuple[str, int, int, int]] = attrs.field(factory=dict)
    entries: dict[tuple[str, int], tuple[str, int, int, int]] = attrs.field(factory=dict)
    keys: dict[tuple[str, int], tuple[str, int, str, str]] = attrs.field(factory=dict)
    """The rows of the keys of accounts without such a commit."""
    spent: dict[str, int] = attrs.field(factory=dict)
    """The first sequence of each key, whatever its commit follows."""
    broken: set[str] = attrs.field(factory=set)
    """Accounts with a commit that does not follow."""
    _links: dict[str, str] = attrs.field(factory=dict)

    def take(self, record: Record) -> None:
        """Fold one more commit."""
        account, events = record.subject[_PREFIX:], record.body["events"]
        self.sequence = record.sequence
        for event in events:
            if (key := event.get("key")) is not None:
                self.spent.setdefault(key, record.sequence)
        if record.body.get("prev") != self._links.get(account):
            self.broken.add(account)
        self._links[account] = link(record.subject, record.data)
        if account in self.broken:
            return
        _, balance, movements, _ = self.balances.get(account, (account, 0, 0, 0))
        for event in events:
            if (key := event.get("key")) is not None:
                self.keys[key, record.sequence] = (key, record.sequence, event["fingerprint"], record.subject)
            movements += 1
            balance += event["d"]["amount"]
            self.entries[account, movements] = (account, movements, event["d"]["amount"], record.sequence)
        self.balances[account] = (account, balance, movements, record.sequence)

    def rows(self, table: str) -> Mapping[Any, tuple[Any, ...]]:
        """The rows of a table."""
        tables: dict[str, Mapping[Any, tuple[Any, ...]]] = {
            BALANCES.name: self.balances,
            ENTRIES.name: self.entries,
            COMMAND_KEYS.name: self.keys,
        }
        return tables[table]


class Oracle:
    """Watches the log and the tables. `report` is called with each violation."""

    def __init__(self, stream: Stream, database: Database, report: Callable[[str], None]) -> None:
        self._stream = stream
        self._database = database
        self._report = report
        self._folds: dict[tuple[int, str], Fold] = {}
        self.unchained: dict[str, int] = {}
        """Accounts with a commit that follows a lost one, each with the sequence whose `prev` proves it."""
        stream.stored = self.stored
        database.committed = self.committed

    def fold(self, lineage: Lineage, sequence: int, purpose: str = "log") -> Fold:
        """The fold of a lineage up to a sequence; kept for each purpose, since each goes forward for itself."""
        kept = self._folds.get((id(lineage), purpose))
        if kept is None or kept.sequence > sequence:
            kept = self._folds[id(lineage), purpose] = Fold()
        for record in lineage.records[kept.sequence : sequence]:
            kept.take(record)
        return kept

    def stored(self, record: Record) -> None:
        """A commit was stored: it has to follow from the ones before, and no key may have taken effect before."""
        lineage = self._stream.lineages[-1]
        fold = self.fold(lineage, record.sequence - 1)
        body, account = record.body, record.subject[_PREFIX:]
        repeated = {event["key"]: fold.spent[event["key"]] for event in body["events"] if event.get("key") in fold.spent}
        self._check_link(lineage, record, account)
        fold = self.fold(lineage, record.sequence)
        if account in fold.broken:  # no broker refuses it; no table may have it
            return
        for key, earlier in repeated.items():
            self._report(f"sequence {record.sequence}: the key {key} takes effect again, after {earlier}")
        _, balance, movements, _ = fold.balances[account]
        state = body["state"]["d"]
        if (state["balance"], state["movements"]) != (balance, movements):
            self._report(f"sequence {record.sequence}: the events give {balance} after {movements}, its state has {state}")
        if balance < 0:
            self._report(f"sequence {record.sequence}: {account} is below zero: {balance}")

    def _check_link(self, lineage: Lineage, record: Record, account: str) -> None:
        """A commit bears the digest of the one before; another one is proof that its writer knew another log."""
        earlier = lineage.records[: record.sequence - 1]
        before = next((one for one in reversed(earlier) if one.subject == record.subject), None)
        wanted = None if before is None else link(before.subject, before.data)
        if record.body.get("prev") == wanted:
            return
        if len(self._stream.lineages) == 1:
            self._report(f"sequence {record.sequence} does not follow the commit before it of {account}")
        self.unchained.setdefault(account, record.sequence)

    def committed(self, session: Session) -> None:
        """A transaction was committed: by the leader, and the tables are the fold of a log up to their checkpoints."""
        lease = self._database.lease
        if lease is None or session.token != lease.token:
            newest = None if lease is None else lease.token
            self._report(f"{session.process} wrote with token {session.token}, the newest is {newest}")
        self.check_tables()

    def check_tables(self) -> None:
        """The tables are the fold of one and the same log."""
        if self.lineage_of_tables() is None:
            self._report(f"the tables at {self.checkpoint()} are the fold of no log")

    def checkpoint(self) -> int:
        """The lowest checkpoint."""
        checkpoints = self._database.checkpoints
        return min((row[2] for row in checkpoints.values()), default=0) if len(checkpoints) > 2 else 0

    def lineage_of_tables(self) -> Lineage | None:
        """The newest log whose fold the tables are."""
        return next((one for one in reversed(self._stream.lineages) if self.tables_are_fold_of(one)), None)

    def tables_are_fold_of(self, lineage: Lineage) -> bool:
        """Whether the tables are the fold of a log up to their checkpoints."""
        for projection, table in (("balances", BALANCES.name), ("entries", ENTRIES.name), (KEYS.name, COMMAND_KEYS.name)):
            row = self._database.checkpoints.get(projection)
            sequence = 0 if row is None else row[2]
            if sequence > len(lineage.records):
                return False
            if self._database.rows[table] != self.fold(lineage, sequence, table).rows(table):
                return False
        return True


__all__ = ["Fold", "Oracle"]
