"""The write side: append to and read from an event log on JetStream."""

from eventlog.commit import (
    AggregateId,
    Appended,
    Commit,
    Context,
    NewCommit,
    NewEvent,
    Position,
    Proposal,
    RecordedEvent,
)
from eventlog.decider import Decider
from eventlog.errors import (
    BlobMissing,
    Conflict,
    EventLogError,
    IncarnationChanged,
    KeyReused,
    LogDamaged,
    LogTruncated,
    OutcomeUnknown,
    SequenceGap,
    TooLarge,
    Unavailable,
    UndecodableCommit,
)
from eventlog.port import DEADLINE, EventLog, Head
from eventlog.registry import Registry

__all__ = [
    "DEADLINE",
    "AggregateId",
    "Appended",
    "BlobMissing",
    "Commit",
    "Conflict",
    "Context",
    "Decider",
    "EventLog",
    "EventLogError",
    "Head",
    "IncarnationChanged",
    "KeyReused",
    "LogDamaged",
    "LogTruncated",
    "NewCommit",
    "NewEvent",
    "OutcomeUnknown",
    "Position",
    "Proposal",
    "RecordedEvent",
    "Registry",
    "SequenceGap",
    "TooLarge",
    "Unavailable",
    "UndecodableCommit",
]
