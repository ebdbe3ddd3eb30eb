"""The events of a log as people look at them: as they are stored, of old versions and unknown types too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import attrs
import msgspec

from eventlog.commit import Commit, Context, Position, context_of
from eventlog.errors import UndecodableCommit


@attrs.frozen(kw_only=True)
class Record:
    """An event as it is stored: `data` is its JSON.

    A commit that cannot be read has one record, with the `problem`, and its bytes as a JSON text in `data`. Unknown values are
    None then.
    """

    position: Position
    aggregate: str
    data: msgspec.Raw
    commit: str | None = None
    at: datetime | None = None
    type: str | None = None
    version: int | None = None
    context: Context = attrs.field(factory=Context)
    problem: str | None = None


def records(commit: Commit) -> Iterator[Record]:
    """The events of a commit, in order."""
    try:
        body = commit.body
    except UndecodableCommit as error:
        data = msgspec.Raw(msgspec.json.encode(commit.data.decode(errors="replace")))
        yield Record(position=Position(commit.sequence, 0), aggregate=commit.subject, data=data, problem=str(error))
        return
    for index, event in enumerate(body.events):
        yield Record(
            position=Position(commit.sequence, index),
            aggregate=commit.subject,
            data=event.data,
            commit=body.id,
            at=body.at,
            type=event.type,
            version=event.version,
            context=context_of(event),
        )
