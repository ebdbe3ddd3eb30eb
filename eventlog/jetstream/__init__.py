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
        Refused,
        answer_of,
        ask,
        call,
        delivery_of,
        persist,
        subjects_of,
    )
    from eventlog.jetstream.append import Appender
    from eventlog.jetstream.batch import MOST_MESSAGES, Batches
    from eventlog.jetstream.keyring import JetStreamKeyring
    from eventlog.jetstream.log import JetStreamLog
    from eventlog.jetstream.message import Message
    from eventlog.jetstream.message_reader import MessageReader, StoredMessage
    from eventlog.jetstream.transport.client import NO_HEADERS, NatsClient, frame
    from eventlog.jetstream.transport.connection import Connection
    from eventlog.jetstream.write_health import WARN_AT, Room
else:
    __getattr__ = facade(
        __name__,
        {
            "eventlog.jetstream.api": (
                "CONSUMER_MISSING PREFIX STREAM_MISSING TIMEOUT WRONG_LAST_SEQUENCE Full Refused answer_of ask call "
                "delivery_of persist subjects_of"
            ),
            "eventlog.jetstream.append": "Appender",
            "eventlog.jetstream.batch": "MOST_MESSAGES Batches",
            "eventlog.jetstream.keyring": "JetStreamKeyring",
            "eventlog.jetstream.log": "JetStreamLog",
            "eventlog.jetstream.message": "Message",
            "eventlog.jetstream.message_reader": "MessageReader StoredMessage",
            "eventlog.jetstream.transport.client": "NO_HEADERS NatsClient frame",
            "eventlog.jetstream.transport.connection": "Connection",
            "eventlog.jetstream.write_health": "WARN_AT Room",
        },
    )

__all__ = [
    "CONSUMER_MISSING", "MOST_MESSAGES", "NO_HEADERS", "PREFIX", "STREAM_MISSING", "TIMEOUT", "WARN_AT", "WRONG_LAST_SEQUENCE",
    "Appender", "Batches", "Connection", "Full", "JetStreamKeyring", "JetStreamLog", "Message", "MessageReader", "NatsClient",
    "Refused", "Room", "StoredMessage", "answer_of", "ask", "call", "delivery_of", "frame", "persist", "subjects_of",
]  # fmt: skip
