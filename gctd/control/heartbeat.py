"""What a worker says of itself, a few times within the time that its presence lasts."""

from __future__ import annotations

from enum import StrEnum

import attrs
import msgspec


class WorkerStatus(StrEnum):
    """What a worker is at."""

    IDLE = "idle"
    BUSY = "busy"
    PAUSED = "paused"
    DRAINING = "draining"
    GONE = "gone"


@attrs.frozen(kw_only=True)
class Heartbeat:
    """One announcement.

    `cpu`: cores used since the one before, 1.5 being one and a half; `memory`: resident bytes; both of the worker with all its
    descendants. `tasks`: what it works on; `concurrency`: at how many it may work at a time. `version` of gctd, `engines` and
    their versions, `go_version` and `sandbox` (how code of repositories is confined) are empty where they are not known.
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

    @property
    def state(self) -> WorkerStatus:
        """The status; one that only another version of the program knows is told from the tasks."""
        known = {status.value: status for status in WorkerStatus}
        return known.get(self.status, WorkerStatus.BUSY if self.tasks else WorkerStatus.IDLE)

    def encoded(self) -> bytes:
        """The announcement as it is stored."""
        return msgspec.json.encode(self)


def decoded(payload: bytes) -> Heartbeat:
    """The announcement in a payload, also in one of another version of the program."""
    return msgspec.json.decode(payload, type=Heartbeat)
