"""The workers that are present, and the route of a job among them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from gctd.control.heartbeat import Heartbeat
from gctd.domain.capabilities import Capabilities, Needs, missing_everywhere

LEAST_WINDOW = 2
"""Jobs of a shared lane that may wait in its queue, also if no worker is present."""


class Everywhere(Enum):
    """The job can go to the queue that all workers share."""

    SHARED = "shared"


@attrs.frozen
class Only:
    """The job can go to these workers, and to no others."""

    workers: tuple[str, ...]


@attrs.frozen
class Nowhere:
    """No present worker can take the job. `blocked`: none has the capability, which `reason` names; else those take no jobs."""

    reason: str
    blocked: bool


Route = Everywhere | Only | Nowhere


@attrs.frozen
class Fleet:
    """The present workers by id."""

    workers: Mapping[str, Heartbeat] = attrs.field(factory=dict)

    def route(self, needs: Needs) -> Route:
        """Return the workers that can run a job with these needs."""
        present = {id_: capabilities(beat) for id_, beat in self.workers.items()}
        taking = {id_ for id_, beat in self.workers.items() if beat.takes_jobs}
        capable = {id_ for id_, has in present.items() if not has.missing(needs)}
        if capable & taking == taking:
            # Also if no worker takes jobs: the first one that does looks whether it can run the job.
            return Everywhere.SHARED
        if capable & taking:
            return Only(tuple(sorted(capable & taking)))
        if capable:
            held = [f"{id_}: {self.workers[id_].reason or self.workers[id_].state}" for id_ in sorted(capable)]
            return Nowhere(f"held by {'; '.join(held)}", blocked=False)
        return Nowhere(missing_everywhere(needs, list(present.values())), blocked=True)

    def has_fast(self, route: Route) -> bool:
        """Return whether a worker of the route has slots for short jobs: else these go the way of scans.

        Without any worker that takes jobs it is true: the next one has such slots.
        """
        workers = route.workers if isinstance(route, Only) else tuple(self.workers)
        return any(self.slots(one, fast=True) for one in workers) or not any(self.slots(one, fast=False) for one in workers)

    def slots(self, worker: str, *, fast: bool) -> int:
        """Return the number of short jobs, or of scans, that a worker does at a time; 0 if it takes none."""
        beat = self.workers.get(worker)
        if beat is None or not beat.takes_jobs:
            return 0
        return beat.fast if fast else beat.concurrency

    def window(self, *, fast: bool) -> int:
        """Return the number of jobs that may wait in a shared queue: so few that the order of the rest can still change."""
        return max(LEAST_WINDOW, 2 * sum(self.slots(worker, fast=fast) for worker in self.workers))


def capabilities(beat: Heartbeat) -> Capabilities:
    """Return the capabilities that a worker announces."""
    return Capabilities(engines=frozenset(beat.engines), go_version="" if beat.fetches_go else beat.go_version)
