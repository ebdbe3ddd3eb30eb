"""Whether a copy of a stream can be restored and read: it is restored on a throw-away server, and every record is read back.

The server that makes a snapshot copies files, also damaged ones, and does not report records that it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from eventlog.admin.backup import StreamCopy, described, restore
from eventlog.admin.throw_away import throw_away_server
from eventlog.commit import Commit
from eventlog.errors import EventLogError, StateLost
from eventlog.jetstream.message_reader import MessageReader, StoredMessage
from eventlog.jetstream.transport.connection import Connection
from eventlog.support.chain import beginning, digest_of, fingerprints, rolled, text_of

Fold = Callable[[Iterable[Any], Any], Any]
"""`Decider.fold` of a category: events and the state before them give the state after them."""


def contradiction(commit: Commit, before: Commit | None, fold: Fold) -> str:
    """The difference between the state of a commit and its events, in words; empty if there is none.

    `before` is the previous commit of the aggregate, None for the first one. Tombstones, and states after a lost commit, are not
    compared.
    """
    if commit.lost is not None or not _knows_state(before):
        return ""
    try:
        state = fold([event.data for event in commit.events], _state_of(before))
        return "" if state == commit.state else _difference(state, commit.state)
    except EventLogError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - events that do not fit the state before them are a finding
        return f"its events cannot be applied to the state before them: {error!r}"


def _knows_state(before: Commit | None) -> bool:
    """Whether the state before a commit is known: after a tombstone in the middle of an aggregate it is not."""
    return before is None or (lost := before.lost) is None or lost.replaces is None


def _state_of(before: Commit | None) -> Any:
    try:
        return None if before is None else before.state
    except StateLost:  # the only commit of the aggregate was lost
        return None


def _difference(folded: Any, stored: Any) -> str:
    ours, theirs = msgspec.to_builtins(folded), msgspec.to_builtins(stored)
    names = [name for name in theirs if ours.get(name) != theirs[name]] if isinstance(ours, dict) else []
    says = "; ".join(f"its events give {name} {ours.get(name)!r}, its state says {theirs[name]!r}" for name in names)
    return says or "its state is not what its events give"  # prose: allow is-no


_TOGETHER = 512
_COMMIT = b'{"id":"'
"""How each commit begins."""
_MOST = 5
"""Places that are named of many."""


class CopyDamaged(EventLogError):
    """A copy of a stream cannot be restored, or not all of it can be read."""

    status = HTTPStatus.CONFLICT


class _Linked(msgspec.Struct):
    prev: str | None = None


async def check_copy(file: Path) -> str:
    """Restore a copy (by its description) on a throw-away server and read all: the running digest of its records.

    Raises BackupInvalid, CopyDamaged, ServerFailed if no server can be started here.
    """
    copied = described(file)
    async with throw_away_server(directory=file.parent) as connection:
        try:
            await restore(connection, file, changes={"max_bytes": -1, "allow_direct": True})
        except EventLogError as error:
            raise CopyDamaged(f"the copy of {copied.stream} cannot be restored: {error}") from error
        digest = await _read(connection, copied)
    if copied.digest not in {None, digest}:
        raise CopyDamaged(f"the copy of {copied.stream} has other records than when it was made: their digest is {digest}")
    return digest


async def _read(connection: Connection, copied: StreamCopy) -> str:
    """The running digest of all records. Raises CopyDamaged."""
    reader = MessageReader(connection, copied.stream)
    reading = _Reading(copied)
    after = 0
    while found := await reader.several({"batch": _TOGETHER, "seq": after + 1, "next_by_subj": ">"}):
        for stored in found:
            reading.take(stored)
        after = found[-1].seq
    return reading.end()


class _Reading:
    """The records of a copy that were read so far."""

    def __init__(self, copied: StreamCopy) -> None:
        self._copied = copied
        self._digest = beginning(copied.stream)
        self._links: dict[str, str] = {}
        self._last, self._count = int(copied.state["first_seq"]) - 1, 0
        self._missing: list[int] = []
        self._broken: list[str] = []

    def take(self, stored: StoredMessage) -> None:
        """One record."""
        self._digest = rolled(self._digest, fingerprints([stored]))
        if len(self._missing) <= _MOST:
            self._missing += range(self._last + 1, min(stored.seq, self._last + _MOST + 2))
        self._last, self._count = stored.seq, self._count + 1
        if stored.data.startswith(_COMMIT):
            self._follow(stored)

    def _follow(self, stored: StoredMessage) -> None:
        try:
            prev = msgspec.json.decode(stored.data, type=_Linked).prev
        except msgspec.MsgspecError:
            self._broken.append(f"sequence {stored.seq} is no commit")
        else:
            if prev is not None and prev != self._links.get(stored.subject):
                self._broken.append(f"sequence {stored.seq} does not follow the commit before it of {stored.subject}")
        self._links[stored.subject] = digest_of(stored.subject, stored.data)

    def end(self) -> str:
        """The digest of all. Raises CopyDamaged."""
        copied = self._copied
        said = self._broken[:_MOST]
        if self._count != copied.messages:
            missing = [*self._missing, *range(self._last + 1, min(copied.last, self._last + _MOST) + 1)][:_MOST]
            places = f": sequences {', '.join(map(str, missing))}" if missing else ""
            said.insert(0, f"{copied.messages - self._count} of {copied.messages} records cannot be read{places}")
        if said:
            raise CopyDamaged(
                f"the copy of {copied.stream} is damaged: {'; '.join(said)}. The stream on the server is then damaged as well. "
                "Keep the tables and older copies: they may be the only place that has what cannot be read. Do not restart that "
                "nats-server before a copy is made with --unverified: it may cut the stream there"
            )
        return text_of(self._digest)
