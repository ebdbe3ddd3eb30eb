"""Looking up idempotency keys, for `eventlog.commands`: in the tables, and if they have no such key, in the log.

A table can lose a row, and then a repeated command would take effect twice. So the process keeps an index of all keys of the log
in memory: the hash of each key, and the sequence of its first commit. It is read from the log at each start.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import structlog

from eventlog import Commit, EventLog, SequenceGap, Unavailable, UndecodableCommit
from eventlog.commands.outcomes import KeyUse, use_in, uses_in
from projections.errors import Behind, ProjectorStopped, StoreUnavailable
from projections.projector.projector import Projector
from projections.store import KEYS, Store

log = structlog.get_logger(__name__)

_BATCH = 5000
_RUN = 16_384
"""Keys of one sorted part of the index: 16 bytes each."""


_Run = tuple["array[int]", "array[int]"]
"""Hashes in order, and the sequence of each."""


class LogKeys:
    """An index of the idempotency keys in a log: 16 bytes for each key.

    `read` fills it with the commits that are there at the start, `applied` adds the later ones.
    """

    def __init__(self, event_log: EventLog) -> None:
        self._log = event_log
        self._recent: dict[int, int] = {}
        self._runs: list[_Run] = []
        self._read = asyncio.Event()
        self._position, self._until = 0, 0
        self.missing = 0
        """Keys that were found in the log and not in the tables, since the start."""

    @property
    def reading(self) -> str | None:
        """How far the log is read, or None if it is read."""
        if self._read.is_set():
            return None
        return f"the keys of the log are being read: sequence {self._position} of {self._until}"

    async def read(self, until: int) -> None:
        """Read the log up to sequence `until`. A record that cannot be read is left out: the tables may have its key.

        Raises Unavailable, LogDamaged.
        """
        self._until = until
        while self._position < until:
            try:
                lists: Any = self._log.follow(after=self._position, until=until, batch=_BATCH)
                async with aclosing(lists):
                    async for commits in lists:
                        self._add(await asyncio.to_thread(_hashed, commits))
                        self._position = commits[-1].sequence
            except SequenceGap as gap:
                self._position = gap.expected
        whole = len(self._runs)
        self._runs[:whole] = [await asyncio.to_thread(_merged, self._runs[:whole])]
        self._read.set()

    def applied(self, commits: Sequence[Commit]) -> None:
        """Add the keys of commits."""
        self._add(_hashed(commits))

    def _add(self, found: Sequence[tuple[int, int]]) -> None:
        for hashed, sequence in found:
            self._recent[hashed] = min(sequence, self._recent.get(hashed, sequence))
        if len(self._recent) >= _RUN:
            run, self._recent = sorted(self._recent.items()), {}
            self._runs.append(_run_of(run))

    async def find(self, key: str, timeout: float) -> KeyUse | None:  # noqa: ASYNC109 - part of the promise
        """The first use of a key, read from the log.

        Raises Unavailable, also if the log is not read yet after `timeout` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._read.wait()
        except TimeoutError as error:
            raise Unavailable(self.reading) from error
        for sequence in self._sequences(hash(key)):
            commit = await self._log.at(sequence)
            if commit is None:
                raise Unavailable(f"sequence {sequence}, which may bear the key, cannot be read")
            if (use := use_in(commit, key)) is not None:
                self.missing += 1
                log.error("a key is in the log and not in the tables: rebuild them", sequence=sequence, aggregate=commit.subject)
                return use
        return None

    def _sequences(self, found: int) -> Sequence[int]:
        """The sequences that a hash is known with."""
        sequences = [self._recent[found]] if found in self._recent else []
        for hashes, places in self._runs:
            at = bisect_left(hashes, found)
            if at < len(hashes) and hashes[at] == found:
                sequences.append(places[at])
        return sorted(sequences)


def _run_of(pairs: Sequence[tuple[int, int]]) -> _Run:
    return array("q", (hashed for hashed, _ in pairs)), array("q", (sequence for _, sequence in pairs))


def _merged(runs: Sequence[_Run]) -> _Run:
    """One part out of several; of several sequences of one hash the first. Pure: runs in any thread."""
    first = dict(sorted((pair for run in runs for pair in zip(*run, strict=True)), reverse=True))
    return _run_of(sorted(first.items()))


def _hashed(commits: Sequence[Commit]) -> Sequence[tuple[int, int]]:
    """The hash of each key of some commits, with the sequence. Pure: runs in any thread."""
    found = []
    for commit in commits:
        if not (commit.may_have_keys and commit.is_guarded):
            continue
        try:
            found += [(hash(record.key), record.sequence) for record in uses_in(commit)]
        except UndecodableCommit:  # its aggregate is parked, and its keys with it
            continue
    return found


class CommandKeys:
    """Where idempotency keys took effect, for `eventlog.commands`: looked up when the read model has reached far enough."""

    def __init__(self, projector: Projector, store: Store, *, timeout: float = 5.0, in_log: LogKeys | None = None) -> None:
        """`timeout`: seconds to wait for the read model. `in_log` is asked for keys that the tables do not have."""
        self._projector = projector
        self._store = store
        self._timeout = timeout
        self._in_log = in_log

    async def find(self, keys: Sequence[str], subject: str, reached: int) -> Mapping[str, KeyUse | Unavailable]:
        """Return the uses of keys, looked up when everything up to sequence `reached` is in the read model.

        That sequence has to include the end of the log as it was about a second ago. The broker compares newer keys, see
        `Proposal.key`. Unavailable is in the place of a use that cannot be known, also if a commit of that aggregate cannot be
        read: the key might be in it. Raises Unavailable if none can be known.
        """
        try:
            await self._projector.wait_for(max(reached, self._projector.end_seen), self._timeout)
            found: dict[str, KeyUse | Unavailable] = dict(await self._store.find_keys(keys))
        except (Behind, ProjectorStopped, StoreUnavailable, Unavailable) as error:
            raise _unknown(error) from error
        for key in keys:
            if key not in found and (use := await self._find_in_log(key, subject)) is not None:
                found[key] = use
        return found

    async def _find_in_log(self, key: str, subject: str) -> KeyUse | Unavailable | None:
        """The use of a key that the tables do not have."""
        try:
            if self._in_log is not None and (use := await self._in_log.find(key, self._timeout)) is not None:
                return use
        except Unavailable as error:
            return _unknown(error)
        parked = self._projector.parked.get((KEYS.name, subject))
        return None if parked is None else _unknown(f"sequence {parked.sequence} cannot be read: {parked.error}")


def _unknown(reason: object) -> Unavailable:
    return Unavailable(f"whether the command has taken effect before cannot be known now, and it is not stored: {reason}")
