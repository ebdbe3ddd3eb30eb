"""Documents of `projections`."""

from __future__ import annotations

from eventlog.admin.reconcile import Drift
from eventlog.admin.scrub import Damage
from projections.rebuild.report import ReadModelReport
from projections.store import Parked
from reference.json_documents.parts import (
    ANYTHING,
    MIGRATIONS,
    TEXT,
    WHOLE,
    YES_OR_NO,
    Schema,
    Types,
    list_of,
    object_of,
    or_null,
)

NO_DOCUMENT = frozenset({"migrate force"})
"""Commands with --json that write errors as JSON only."""


def schemas() -> Schema:
    """Return the schemas of the documents by command; of `events` it is each line."""
    types = Types()
    copied = object_of(stream=TEXT, last=WHOLE, messages=WHOLE, bytes=WHOLE, verified=YES_OR_NO)
    switched = object_of(read_model=TEXT, sequence=WHOLE)
    rebuilt = object_of(**switched["properties"], switched=YES_OR_NO, log=list_of(TEXT), parked=list_of(TEXT))
    return types.whole(
        {
            "status": _status(types),
            "verify": _verified(),
            **dict.fromkeys(("rebuild", "resume"), rebuilt),
            **dict.fromkeys(("switch", "rollback"), switched),
            "parked": list_of(types.of(Parked)),
            "unpark": object_of(freed=list_of(TEXT), parked=list_of(TEXT)),
            "events": _record(),
            "scrub": _scrubbed(types),
            "repair": object_of(
                stream=TEXT,
                until=WHOLE,
                applied=YES_OR_NO,
                rebuild=YES_OR_NO,
                damaged=list_of(object_of(sequence=WHOLE, subject=or_null(TEXT), problem=TEXT, remedy=or_null(TEXT))),
            ),
            **dict.fromkeys(("streams plan", "streams apply"), list_of(types.of(Drift))),
            **dict.fromkeys(("streams backup", "streams restore"), list_of(copied)),
            **MIGRATIONS,
        }
    )


def _status(types: Types) -> Schema:
    """Return the schema of `projections status`; `digest` is there if it was asked for."""
    members = {"database": TEXT, **types.members(ReadModelReport), "parked": WHOLE}
    return {"type": "object", "required": list(members), "properties": {**members, "digest": TEXT}}


def _verified() -> Schema:
    row = {"type": ["object", "null"]}
    difference = object_of(table=TEXT, key=list_of(ANYTHING), live=row, fresh=row, text=TEXT)
    return object_of(
        read_model=TEXT,
        sequence=WHOLE,
        equal=YES_OR_NO,
        difference=or_null(difference),
        broken=list_of(TEXT),
        log=list_of(TEXT),
        missing_keys=WHOLE,
        parked=WHOLE,
        parked_aggregates=list_of(TEXT),
        digest=TEXT,
    )


def _record() -> Schema:
    """Return the schema of an event, or of a record that cannot be read, which has a `problem` in place of a type."""
    place = {"sequence": WHOLE, "aggregate": TEXT, "position": TEXT}
    unreadable = object_of(**place, at={"type": "null"}, type={"type": "null"}, data=ANYTHING, problem=or_null(TEXT))
    event = object_of(**place, commit=TEXT, at=TEXT, type=TEXT, version=WHOLE, data=ANYTHING)
    event["properties"] |= dict.fromkeys(("key", "fingerprint", "correlation", "causation"), TEXT)
    return {"anyOf": [event, unreadable]}


def _scrubbed(types: Types) -> Schema:
    repaired = object_of(sequence=WHOLE, remedy=TEXT, at=TEXT)
    repaired["properties"]["operator"] = or_null(TEXT)
    found = object_of(**types.members(Damage), server=or_null(TEXT))
    return object_of(stream=TEXT, until=WHOLE, damaged=WHOLE, found=list_of(found), repaired=list_of(repaired))
