"""The event log on NATS JetStream: `log.JetStreamLog`, over a `connection.Connection`."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from eventlog.jetstream.api import (
        CONSUMER_MISSING,
        PREFIX,
        STREAM_MISSING,
        TIMEOUT,
        WRONG_LAST_SEQUENCE,
        Full,
        MessageReader,
        Refused,
        StoredMessage,
        answer_of,
        ask,
        call,
        delivery_of,
        persist,
        subjects_of,
    )
    from eventlog.jetstream.append import MOST_MESSAGES, Appender, Batches, Message
    from eventlog.jetstream.client import NO_HEADERS, NatsClient, frame
    from eventlog.jetstream.connection import Connection
    from eventlog.jetstream.fence import WARN_AT, Room
    from eventlog.jetstream.keyring import JetStreamKeyring
    from eventlog.jetstream.log import JetStreamLog
else:
    __getattr__ = facade(
        __name__,
        {
            "eventlog.jetstream.api": (
                "CONSUMER_MISSING PREFIX STREAM_MISSING TIMEOUT WRONG_LAST_SEQUENCE Full MessageReader Refused "
                "StoredMessage answer_of ask call delivery_of persist subjects_of"
            ),
            "eventlog.jetstream.append": "MOST_MESSAGES Appender Batches Message",
            "eventlog.jetstream.client": "NO_HEADERS NatsClient frame",
            "eventlog.jetstream.connection": "Connection",
            "eventlog.jetstream.fence": "WARN_AT Room",
            "eventlog.jetstream.keyring": "JetStreamKeyring",
            "eventlog.jetstream.log": "JetStreamLog",
        },
    )

__all__ = [
    "CONSUMER_MISSING", "MOST_MESSAGES", "NO_HEADERS", "PREFIX", "STREAM_MISSING", "TIMEOUT", "WARN_AT", "WRONG_LAST_SEQUENCE",
    "Appender", "Batches", "Connection", "Full", "JetStreamKeyring", "JetStreamLog", "Message", "MessageReader", "NatsClient",
    "Refused", "Room", "StoredMessage", "answer_of", "ask", "call", "delivery_of", "frame", "persist", "subjects_of",
]  # fmt: skip
