"""The event stream of tests: the tracker's declaration in `streams.yaml`, on the subjects of the conformance suite."""

from __future__ import annotations

from typing import Any

from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from tests.support.log.conformance import REGISTRY, SUBJECTS

STREAM = "GCTD"


async def event_stream(connection: Connection, *, replicas: int = 1, **fields: Any) -> JetStreamLog:
    """Create it, with other `fields` if they are given in the notation of `streams.yaml`; a log on it."""
    overrides = {STREAM: {"subjects": [SUBJECTS], **fields}}
    left = await apply_declarations(connection, load_declarations(replicas=replicas, overrides=overrides).only(STREAM))
    assert left == []
    log = JetStreamLog(connection, STREAM, REGISTRY)
    assert (await log.head()).last == 0, "the stream of an earlier test is still there"
    return log
