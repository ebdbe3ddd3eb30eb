"""The keys that a stream of keys must have: the log has events that are sealed with them."""

from __future__ import annotations

import re
from collections.abc import Collection

from eventlog.admin.declarations import Stream
from eventlog.errors import Unavailable
from eventlog.jetstream.api import STREAM_MISSING, Refused, ask
from eventlog.jetstream.message_reader import MessageReader
from eventlog.jetstream.transport.connection import Connection

_AT_ONCE = 256
_SEALED = re.compile(rb'"p":"([0-9a-f]{32})\.')


async def needed_keys(connection: Connection, stream: Stream) -> Collection[str]:
    """Return the ids of the keys of sealed events in the log, without the keys of erased persons. Raises Unavailable."""
    if stream.keys_of is None:
        return ()
    log, erased = stream.keys_of["stream"], f"{stream.keys_of['erased']}."
    try:
        last = (await ask(connection, f"STREAM.INFO.{log}"))["state"]["last_seq"]
    except Refused as error:
        if error.number != STREAM_MISSING:
            raise
        return ()
    reader, place, ids, gone = MessageReader(connection, log), 0, set[str](), set[str]()
    while place < last:
        messages = await reader.several({"batch": _AT_ONCE, "next_by_subj": ">", "seq": place + 1})
        if not messages:
            raise Unavailable(f"{log} ends at sequence {last}, and cannot be read after {place}")
        for message in messages:
            ids.update(id_.decode() for id_ in _SEALED.findall(message.data))
            if message.subject.startswith(erased):
                gone.add(message.subject.removeprefix(erased))
        place = messages[-1].seq
    return ids - gone
