"""Jobs that wait for a place in a queue, and the fair order among repositories.

The next job is found in a time that hardly depends on the number of repositories: each way through the lanes has a heap of
groups. A group whose order changes gets one more entry. Its older entries are dropped when they come to the top.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeVar

import attrs

from gctd.control.jobs import JobKind, JobTicket
from gctd.domain.capabilities import Needs

T = TypeVar("T")
Key = tuple[JobKind, str]
Way = tuple[bool, Needs]
"""A way through the lanes: whether the job is a short one, and the capabilities that it needs."""
_Order = tuple[int, int]
_SPARE = 64
"""Entries of the past that a heap may have in addition to one for each group."""


def key_of(ticket: JobTicket) -> Key:
    """Return the kind and id of a job."""
    return ticket.kind, ticket.id


@attrs.frozen
class Group:
    """Jobs with the same way through the lanes, of one repository."""

    fast: bool
    needs: Needs
    repo: str

    @property
    def way(self) -> Way:
        """Its way through the lanes."""
        return self.fast, self.needs


@attrs.frozen
class QueuedJob:
    """A job that was put into a queue, or that a worker runs. `worker` is empty for a shared queue."""

    group: Group
    ticket: JobTicket | None
    worker: str
    at: float
    running: bool = False


class JobBacklog:
    """Pending jobs in groups, and the jobs that are in queues or run."""

    def __init__(self) -> None:
        self._groups: dict[Group, dict[Key, JobTicket]] = {}
        self._group_of: dict[Key, Group] = {}
        self._of_way: defaultdict[Way, dict[Group, None]] = defaultdict(dict)
        self._of_repo: defaultdict[tuple[bool, str], dict[Group, None]] = defaultdict(dict)
        self._heaps: defaultdict[Way, list[tuple[_Order, int, Group]]] = defaultdict(list)
        self._entries = count()
        self.placed: dict[Key, QueuedJob] = {}
        self._load: Counter[tuple[bool, str]] = Counter()

    def __contains__(self, key: Key) -> bool:
        return key in self._group_of or key in self.placed

    @property
    def pending(self) -> int:
        """Jobs that are in no queue."""
        return len(self._group_of)

    def groups(self) -> Iterator[tuple[Group, list[JobTicket]]]:
        """Yield the groups with their pending jobs, the oldest first."""
        for group, tickets in list(self._groups.items()):
            yield group, list(tickets.values())

    def ways(self) -> set[Way]:
        """Return the different ways through the lanes that pending jobs have."""
        return set(self._of_way)

    def offer(self, ticket: JobTicket) -> None:
        """Add a job, or replace the one with the same kind and id."""
        self.remove(key_of(ticket))
        group = Group(ticket.fast, ticket.needs, ticket.repo)
        is_new = group not in self._groups
        self._groups.setdefault(group, {})[key_of(ticket)] = ticket
        self._group_of[key_of(ticket)] = group
        if is_new:
            self._of_way[group.way][group] = self._of_repo[group.fast, group.repo][group] = None
            self._sort_in(group)

    def remove(self, key: Key) -> None:
        """Forget a job."""
        if (placed := self.placed.pop(key, None)) is not None:
            self._count(placed.group, -1)
        if (group := self._group_of.pop(key, None)) is None:
            return
        tickets = self._groups[group]
        was_first = next(iter(tickets)) == key
        del tickets[key]
        if not tickets:
            del self._groups[group]
            _discard(self._of_way, group.way, group)
            _discard(self._of_repo, (group.fast, group.repo), group)
        elif was_first:
            self._sort_in(group)

    def put(self, key: Key, placed: QueuedJob) -> None:
        """Note that a job is in a queue, or runs."""
        self.remove(key)
        self.placed[key] = placed
        self._count(placed.group, 1)

    def next(self, can_go: Callable[[Way], bool]) -> JobTicket | None:
        """Return the job that is next: of the repository with the fewest jobs in queues and at work, then the oldest.

        `can_go` is asked once for each way, and returns whether it has a place for a job.
        """
        tops = (self._top(way) for way in tuple(self._of_way) if can_go(way))
        first = min(tops, default=None)
        return None if first is None else self._first(first[-1])

    def _top(self, way: Way) -> tuple[_Order, int, Group]:
        """The entry of the group that is next on a way with pending jobs."""
        heap, groups = self._heaps[way], self._of_way[way]
        while (entry := heap[0])[-1] not in groups or entry[0] != self._order(entry[-1]):
            heappop(heap)
        return entry

    def _sort_in(self, group: Group) -> None:
        """Add an entry for the present order of a group."""
        heap, groups = self._heaps[group.way], self._of_way[group.way]
        heappush(heap, (self._order(group), next(self._entries), group))
        if len(heap) > 2 * len(groups) + _SPARE:
            heap[:] = [(self._order(each), next(self._entries), each) for each in groups]
            heapify(heap)

    def _order(self, group: Group) -> _Order:
        return self._load[group.fast, group.repo], self._first(group).sequence

    def _first(self, group: Group) -> JobTicket:
        return next(iter(self._groups[group].values()))

    def _count(self, group: Group, change: int) -> None:
        key = (group.fast, group.repo)
        self._load[key] += change
        if not self._load[key]:
            del self._load[key]
        for each in self._of_repo.get(key, ()):
            self._sort_in(each)


def _discard(groups: dict[T, dict[Group, None]], key: T, group: Group) -> None:
    """Remove a group, and the key of the last one."""
    del groups[key][group]
    if not groups[key]:
        del groups[key]
