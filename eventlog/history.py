"""Search of a log: events by type, aggregate and time, as records for a reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

import attrs
import msgspec

from eventlog.commit import AggregateId, Commit, Context, Position, context_of
from eventlog.errors import UndecodableCommit
from eventlog.port import EventLog


@attrs.frozen(kw_only=True)
class Record:
    """An event as it is stored: `data` is its JSON.

    A commit that cannot be read has one record, with the `problem`, and its bytes as a JSON text in `data`. Unknown values are
    None then.
    """

    position: Position
    aggregate: str
    data: msgspec.Raw
    commit: str | None = None
    at: datetime | None = None
    type: str | None = None
    version: int | None = None
    context: Context = attrs.field(factory=Context)
    problem: str | None = None


def event_records(commit: Commit) -> Iterator[Record]:
    """The events of a commit, in order."""
    try:
        body = commit.body
    except UndecodableCommit as error:
        data = msgspec.Raw(msgspec.json.encode(commit.data.decode(errors="replace")))
        yield Record(position=Position(commit.sequence, 0), aggregate=commit.subject, data=data, problem=str(error))
        return
    for index, event in enumerate(body.events):
        yield Record(
            position=Position(commit.sequence, index),
            aggregate=commit.subject,
            data=event.data,
            commit=body.id,
            at=body.at,
            type=event.type,
            version=event.version,
            context=context_of(event),
        )


MOST = 20_000
"""Commits that are read for one page."""

_FIRST_WINDOW = 500


@attrs.frozen(kw_only=True)
class EventFilter:
    """Which events: the events with a sequence from `first` to `last` (None: to the end) that match all conditions.

    `text` is found in the subject, the type or the stored JSON, whatever the case of its letters. `newest` first or oldest first;
    `limit` ends a page, behind the commit with which it is reached.
    """

    first: int = 1
    last: int | None = None
    category: str | None = None
    aggregate: AggregateId | None = None
    types: frozenset[str] = frozenset()
    text: str = ""
    newest: bool = True
    limit: int = 100

    @property
    def takes_all(self) -> bool:
        """Whether there is no condition but the sequence."""
        return not (self.category or self.aggregate or self.types or self.text)

    def of(self, commit: Commit) -> Sequence[Record]:
        """The events of a commit that are wanted, in order."""
        if self.category is not None and commit.category != self.category:
            return ()
        records = event_records(commit)
        if self.types:
            records = (record for record in records if record.type in self.types)
        if self.text:
            text = self.text.casefold()
            records = (record for record in records if text in _text(record))
        return tuple(records)


def _text(record: Record) -> str:
    return f"{record.aggregate} {record.type or ''} {bytes(record.data).decode(errors='replace')}".casefold()


@attrs.frozen(kw_only=True)
class Page:
    """The found events among the commits with the sequences `first` to `last`; `end` is the log's last sequence.

    `next` is the sequence of the next page, None if everything was looked at.
    """

    records: tuple[Record, ...]
    first: int
    last: int
    end: int
    next: int | None


async def search_events(log: EventLog, event_filter: EventFilter, *, most: int = MOST) -> Page:
    """One page. It may be short, and even empty, where `most` commits did not have more.

    Raises Unavailable, and LogDamaged or AggregateDamaged for a record that cannot be read.
    """
    head = await log.head()
    first = max(event_filter.first, head.first)
    last = head.last if event_filter.last is None else min(event_filter.last, head.last)
    if first > last:
        return Page(records=(), first=first, last=last, end=head.last, next=None)
    search = _PageSearch(log, event_filter, most)
    if event_filter.newest:
        next_ = await search.backwards(first, last)
        seen_first, seen_last = (first if next_ is None else next_ + 1), last
    else:
        next_ = await search.forwards(first, last)
        seen_first, seen_last = first, (last if next_ is None else next_ - 1)
    return Page(records=tuple(search.records), first=seen_first, last=seen_last, end=head.last, next=next_)


class _PageSearch:
    """One page being filled."""

    def __init__(self, log: EventLog, event_filter: EventFilter, most: int) -> None:
        self.records: list[Record] = []
        self._log = log
        self._filter = event_filter
        self._most = most
        self._read = 0

    @property
    def _full(self) -> bool:
        return len(self.records) >= self._filter.limit or self._read >= self._most

    async def forwards(self, first: int, last: int) -> int | None:
        """Read on from `first`; gives the sequence at which the next page begins."""
        async with aclosing(self._follow(first, last)) as batches:
            async for commits in batches:
                for commit in commits:
                    self._read += 1
                    self.records.extend(self._filter.of(commit))
                    if self._full:
                        return commit.sequence + 1 if commit.sequence < last else None
        return None

    async def backwards(self, first: int, last: int) -> int | None:
        """Read back from `last`, in pieces that are read forwards; gives the sequence at which the next page begins."""
        event_filter = self._filter
        window = event_filter.limit if event_filter.takes_all else _FIRST_WINDOW
        while True:
            begin = max(first, last - window + 1)
            async with aclosing(self._follow(begin, last)) as batches:
                commits = [commit async for batch in batches for commit in batch]
            for commit in reversed(commits):
                self._read += 1
                self.records.extend(reversed(event_filter.of(commit)))
                if self._full:
                    return commit.sequence - 1 if commit.sequence > first else None
            if begin <= first:
                return None
            last = begin - 1
            # Of one aggregate a piece has few commits, however long it is.
            window = window * 8 if event_filter.aggregate is not None else min(window * 4, self._most - self._read)

    def _follow(self, first: int, last: int) -> Any:
        batches: AsyncIterator[Sequence[Commit]] = self._log.follow(after=first - 1, until=last, aggregate=self._filter.aggregate)
        return batches
