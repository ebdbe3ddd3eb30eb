"""Jobs that wait for a place in a queue, and the fair order among repositories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import attrs

from gctd.control.jobs import JobKind, JobTicket
from gctd.domain.capabilities import Needs

Key = tuple[JobKind, str]


def key_of(ticket: JobTicket) -> Key:
    """Return the kind and id of a job."""
    return ticket.kind, ticket.id


@attrs.frozen
class Group:
    """Jobs with the same way through the lanes, of one repository."""

    fast: bool
    needs: Needs
    repo: str


@attrs.frozen
class QueuedJob:
    """A job that was put into a queue, or that a worker runs. `worker` is empty for a shared queue."""

    group: Group
    ticket: JobTicket | None
    worker: str
    at: float
    running: bool = False


class Backlog:
    """Pending jobs in groups, and the jobs that are in queues or run."""

    def __init__(self) -> None:
        self._groups: dict[Group, dict[Key, JobTicket]] = {}
        self._group_of: dict[Key, Group] = {}
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

    def kinds(self) -> set[tuple[bool, Needs]]:
        """Return the different ways through the lanes that pending jobs have."""
        return {(group.fast, group.needs) for group in self._groups}

    def offer(self, ticket: JobTicket) -> None:
        """Add a job, or replace the one with the same kind and id."""
        self.remove(key_of(ticket))
        group = Group(ticket.fast, ticket.needs, ticket.repo)
        self._groups.setdefault(group, {})[key_of(ticket)] = ticket
        self._group_of[key_of(ticket)] = group

    def remove(self, key: Key) -> None:
        """Forget a job."""
        if (placed := self.placed.pop(key, None)) is not None:
            self._count(placed.group, -1)
        if (group := self._group_of.pop(key, None)) is not None:
            tickets = self._groups[group]
            del tickets[key]
            if not tickets:
                del self._groups[group]

    def put(self, key: Key, placed: QueuedJob) -> None:
        """Note that a job is in a queue, or runs."""
        self.remove(key)
        self.placed[key] = placed
        self._count(placed.group, 1)

    def next(self, can_go: Callable[[Group], bool]) -> JobTicket | None:
        """Return the job that is next: of the repository with the fewest jobs in queues and at work, then the oldest.

        Only groups for which `can_go` returns true have a place for a job.
        """
        best: tuple[int, int] | None = None
        found: JobTicket | None = None
        for group, tickets in self._groups.items():
            head = next(iter(tickets.values()))
            order = (self._load[group.fast, group.repo], head.sequence)
            if (best is None or order < best) and can_go(group):
                best, found = order, head
        return found

    def _count(self, group: Group, change: int) -> None:
        key = (group.fast, group.repo)
        self._load[key] += change
        if not self._load[key]:
            del self._load[key]
