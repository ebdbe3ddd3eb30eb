"""kill -9 of the parts of a cluster under load, and how long clients then waited."""

from __future__ import annotations

import time

import attrs

from tests.support.cluster.load import Load
from tests.support.cluster.system import SERVERS

KINDS = ("nats leader", "nats follower", "serve", "worker", "pantry", "postgres")


@attrs.frozen
class Kill:
    """Result of a kill: seconds until the part was ready again, and the longest wait of a writer and of a reader."""

    kind: str
    part: str
    back: float
    write: float
    read: float


async def kill(load: Load, kind: str) -> Kill:
    """Kill a part of a kind while all parts run. Wait until it is back, and each client has an answer to a later request."""
    await load.cluster.whole()
    part = await _choose(load, kind)
    at = time.monotonic()
    await load.cluster.back(part, load.cluster.kill(part))
    back = time.monotonic()
    await load.all_answered(since=back)
    return Kill(kind, part, back - at, _longest(load, "write", at), _longest(load, "read", at))


async def _choose(load: Load, kind: str) -> str:
    cluster = load.cluster
    match kind:
        case "nats leader":
            return await cluster.leader("PANTRY")
        case "nats follower":
            leader = await cluster.leader("PANTRY")
            return next(server for server in SERVERS if server != leader)
        case "serve" | "pantry":  # the one that applies events
            return await cluster.leading(kind, cluster.ready["gctd" if kind == "serve" else "pantry"])
        case "worker":
            return "worker-1"
        case _:
            return kind


def _longest(load: Load, kind: str, since: float) -> float:
    return max(done.ended - done.began for done in load.since(since) if done.kind == kind)
