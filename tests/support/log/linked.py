"""Commits of accounts that name the commit before them, or do not."""

from __future__ import annotations

import msgspec

from eventlog import Commit
from eventlog.support.chain import FOLLOWS, GUARD
from tests.support.readside.ledger import EPOCH, REGISTRY


def written(
    sequence: int,
    name: str,
    before: Commit | str | None,
    *,
    guard: int | None = None,
    in_row: bool = False,
    id_: str = "",
    event: object = None,
) -> Commit:
    """A commit as `Registry.encode` writes it, after a commit of its account, or with that `prev`."""
    prev = before.digest if isinstance(before, Commit) else before
    named = {} if prev is None else {"prev": prev}
    kind, data = ("Opened", {"owner": name}) if event is None else ("CommitLost", msgspec.to_builtins(event))
    body: dict[str, object] = {
        "id": id_ or f"id-{sequence}",
        "at": EPOCH,
        **named,
        "events": [{"t": kind, "d": data}],
        "state": {"d": {"owner": name}},
    }
    return _at(sequence, name, msgspec.json.encode(body), before, guard, in_row=in_row)


def foreign(sequence: int, name: str, before: Commit | None, *, guard: int | None = None) -> Commit:
    """The same members in another order."""
    prev = None if before is None else before.digest
    body: dict[str, object] = {"prev": prev, "state": {"d": None}, "events": [], "at": EPOCH, "id": f"id-{sequence}"}
    return _at(sequence, name, msgspec.json.encode(body), before, guard)


def stray(sequence: int, name: str, before: Commit) -> Commit:
    """A commit that was published past the event log."""
    plain = written(sequence, name, before)
    return REGISTRY.commit(sequence, plain.subject, plain.data)


def sound(count: int) -> list[Commit]:
    """Commits of three accounts in turn, each after the one before it."""
    commits: list[Commit] = []
    for sequence in range(1, count + 1):
        commits.append(written(sequence, "abc"[sequence % 3], commits[-3] if sequence > 3 else None))
    return commits


def _at(sequence: int, name: str, data: bytes, before: Commit | str | None, guard: int | None, *, in_row: bool = False) -> Commit:
    if guard is None:
        guard = before.sequence if isinstance(before, Commit) else 0
    line = f"{FOLLOWS}: previous" if in_row else f"{GUARD}: {guard}"
    return REGISTRY.commit(sequence, f"ledger.account.{name}", data, f"NATS/1.0\r\n{line}\r\n\r\n".encode())
