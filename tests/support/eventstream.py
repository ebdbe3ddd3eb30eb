"""The event stream that tests write to: what `streams.yaml` declares for the tracker, on the conformance suite's subjects."""

from __future__ import annotations

from typing import Any

from eventlog.conformance import REGISTRY, SUBJECTS
from eventlog.declarations import load
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from eventlog.streams import apply

STREAM = "GCTD"


async def event_stream(connection: Connection, *, replicas: int = 1, **fields: Any) -> JetStreamLog:
    """Create it, with other `fields` where they are given in the notation of `streams.yaml`; a log on it."""
    overrides = {STREAM: {"subjects": [SUBJECTS], **fields}}
    left = await apply(connection, load(replicas=replicas, overrides=overrides).only(STREAM))
    assert left == []
    log = JetStreamLog(connection, STREAM, REGISTRY)
    assert (await log.head()).last == 0, "the stream of an earlier test is still there"
    return log
