"""The write side: append to and read from an event log on JetStream."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from eventlog.commands import Commands, CommandStep, Outcome, nothing_sent
    from eventlog.commit import (
        ERASED,
        MISSING,
        SEALED,
        AggregateId,
        Commit,
        Context,
        NewCommit,
        NewEvent,
        Position,
        Registry,
        personal,
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
    from eventlog.history import EventFilter, Page, Record, event_records, search_events
    from eventlog.port import EventLog, Head
    from eventlog.privacy import Ciphertext, PersonalDataCipher
    from eventlog.support.files import write_private
    from eventlog.support.timers import TimerQueue, during, tick, until_one_ends, until_tick
    from eventlog.support.tracing import (
        PROCESS,
        SEND,
        SpanKind,
        Stages,
        Trace,
        hex_digits,
        message_attributes,
        record_span,
        recording_spans,
    )
else:
    __getattr__ = facade(
        __name__,
        {
            "eventlog.commands": "CommandStep Commands Outcome nothing_sent",
            "eventlog.commit": "ERASED MISSING SEALED AggregateId Commit Context NewCommit NewEvent Position Registry personal",
            "eventlog.decider": "Decider",
            "eventlog.errors": (
                "AggregateDamaged BlobMissing Conflict EventLogError IncarnationChanged KeyReused KeyTaken LogDamaged "
                "LogDiverged LogTruncated OutcomeUnknown SequenceGap TooLarge Unavailable UndecodableCommit"
            ),
            "eventlog.history": "EventFilter Page Record event_records search_events",
            "eventlog.port": "EventLog Head",
            "eventlog.privacy": "Ciphertext PersonalDataCipher",
            "eventlog.support.files": "write_private",
            "eventlog.support.timers": "TimerQueue during tick until_one_ends until_tick",
            "eventlog.support.tracing": (
                "PROCESS SEND SpanKind Stages Trace hex_digits message_attributes record_span recording_spans"
            ),
        },
    )

__all__ = [
    "ERASED", "MISSING", "PROCESS", "SEALED", "SEND", "AggregateDamaged", "AggregateId", "BlobMissing", "Ciphertext",
    "CommandStep", "Commands", "Commit", "Conflict", "Context", "Decider", "EventFilter", "EventLog", "EventLogError", "Head",
    "IncarnationChanged", "KeyReused", "KeyTaken", "LogDamaged", "LogDiverged", "LogTruncated", "NewCommit", "NewEvent",
    "Outcome", "OutcomeUnknown", "Page", "PersonalDataCipher", "Position", "Record", "Registry", "SequenceGap", "SpanKind",
    "Stages", "TimerQueue", "TooLarge", "Trace", "Unavailable", "UndecodableCommit", "during", "event_records", "hex_digits",
    "message_attributes", "nothing_sent", "personal", "record_span", "recording_spans", "search_events", "tick", "until_one_ends",
    "until_tick", "write_private",
]  # fmt: skip
