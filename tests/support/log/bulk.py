"""Many messages in a stream quickly, whatever they contain; for tests that count and order, and do not decode."""

from __future__ import annotations

from typing import Any

from eventlog.admin.declarations import parse
from eventlog.admin.reconcile import apply_declarations
from eventlog.jetstream.connection import Connection

STREAM = "BULK"
SUBJECT = "bulk.thing"
_BATCH = 1000


async def bulk_stream(connection: Connection, **fields: Any) -> None:
    """Create the stream BULK, with other fields if they are given in the notation of `streams.yaml`."""
    declared = {"subjects": [f"{SUBJECT}.*"], "allow_atomic": True, "incarnation": True, "discard": "new", "max_bytes": "2GiB"}
    assert await apply_declarations(connection, parse({"streams": {STREAM: declared | fields}})) == []


async def fill(connection: Connection, count: int, *, size: int = 100, subjects: int = 10) -> None:
    """Append messages in atomic batches; the n-th goes to `bulk.thing.<n modulo subjects>`, n from 0 at each call."""
    body = b"x" * size
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        lines = [b"Nats-Batch-Id: %d\r\nNats-Batch-Sequence: %d\r\n" % (start, at + 1) for at in range(len(numbers))]
        lines[-1] += b"Nats-Batch-Commit: 1\r\n"
        messages = [(f"{SUBJECT}.{number % subjects}", line, body) for number, line in zip(numbers, lines, strict=True)]
        reply = await connection.send_batch(messages, 10)
        assert b'"error"' not in reply.data, reply.data
