"""The write side: append to and read from an event log on JetStream."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from eventlog.commands import Commands, CommandStep, Outcome
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
        AggregateDamaged,
        BlobMissing,
        Conflict,
        EventLogError,
        IncarnationChanged,
        KeyReused,
        KeyTaken,
        LogDamaged,
        LogDiverged,
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
    "AggregateDamaged",
    "AggregateId",
    "Appended",
    "BlobMissing",
    "CommandStep",
    "Commands",
    "Commit",
    "Conflict",
    "Context",
    "Decider",
    "EventLog",
    "EventLogError",
    "Head",
    "IncarnationChanged",
    "KeyReused",
    "KeyTaken",
    "LogDamaged",
    "LogDiverged",
    "LogTruncated",
    "NewCommit",
    "NewEvent",
    "Outcome",
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

__getattr__ = facade(
    __name__,
    {
        "eventlog.commands": "Commands CommandStep Outcome",
        "eventlog.commit": "AggregateId Appended Commit Context NewCommit NewEvent Position Proposal RecordedEvent",
        "eventlog.decider": "Decider",
        "eventlog.errors": "AggregateDamaged BlobMissing Conflict EventLogError IncarnationChanged KeyReused KeyTaken LogDamaged "
        "LogDiverged LogTruncated OutcomeUnknown SequenceGap TooLarge Unavailable UndecodableCommit",
        "eventlog.port": "DEADLINE EventLog Head",
        "eventlog.registry": "Registry",
    },
)
