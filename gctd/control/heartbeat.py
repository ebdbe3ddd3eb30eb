"""The status report of a worker, sent several times within the lifetime of its presence entry."""

from __future__ import annotations

from enum import StrEnum

import attrs
import msgspec


class WorkerStatus(StrEnum):
    """State of a worker."""

    IDLE = "idle"
    BUSY = "busy"
    PAUSED = "paused"
    FULL = "full"
    DRAINING = "draining"
    GONE = "gone"


@attrs.frozen(kw_only=True)
class Heartbeat:
    """One announcement.

    `cpu` is the cores used since the previous announcement (1.5: one and a half). `memory` is the resident bytes. Both cover the
    worker and all its descendants. `tasks` are the ids of its jobs, also of those whose result is being reported. `concurrency`
    is its number of slots for scans, `fast` its number of slots for short jobs. These fields are empty if unknown: `version` of
    gctd, `engines` and their versions, `go_version`, `fetches_go` (the worker downloads newer toolchains), `platform`
    (`linux/amd64`) and `sandbox` (confinement of repository code). `reason` is set with the status `full`: why no job has room
    on the disk.
    """

    session: str
    status: str
    tasks: tuple[str, ...] = ()
    cpu: float = 0.0
    memory: int = 0
    concurrency: int = 1
    version: str = ""
    engines: dict[str, str] = attrs.field(factory=dict)
    go_version: str = ""
    sandbox: str = ""
    fast: int = 0
    fetches_go: bool = False
    platform: str = ""
    reason: str = ""

    @property
    def state(self) -> WorkerStatus:
        """Return the status. If only another version of the program has that status, it is derived from the tasks."""
        known = {status.value: status for status in WorkerStatus}
        return known.get(self.status, WorkerStatus.BUSY if self.tasks else WorkerStatus.IDLE)

    @property
    def takes_jobs(self) -> bool:
        """Whether it takes jobs from the queue, now or after its running jobs."""
        return self.state in {WorkerStatus.IDLE, WorkerStatus.BUSY}

    def shown(self, *, paused: bool) -> WorkerStatus:
        """Return the status of a worker that is known to be `paused` or not. It may announce the pause later."""
        return WorkerStatus.PAUSED if paused and self.state is not WorkerStatus.DRAINING else self.state

    def encoded(self) -> bytes:
        """Return the announcement in its stored form."""
        return msgspec.json.encode(self)


def decoded(payload: bytes) -> Heartbeat:
    """The announcement in a payload, also in one of another version of the program."""
    return msgspec.json.decode(payload, type=Heartbeat)
