"""The common base of the clients of all services, and of their command lines.

`errors` has the errors of clients, each with the exit code of a command. `transport` makes requests, `feed` follows an event
stream, `service` is the base of a client of one service.
"""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from terminalkit.client.service import (
        RESET,
        ClientSession,
        Opened,
        Position,
        ReceivedFrame,
        Resource,
        ServiceClient,
        Signal,
        StreamLost,
        command_with_client,
        one_more,
        only,
        parse,
        parse_list,
    )
    from terminalkit.client.transport import (
        ClientError,
        Conflicting,
        NotAllowed,
        NotFound,
        Rejected,
        ServerAnswer,
        TimedOut,
        Unavailable,
        segment,
    )
else:
    __getattr__ = facade(
        __name__,
        {
            "terminalkit.client.service": (
                "RESET ClientSession Opened Position ReceivedFrame Resource ServiceClient Signal StreamLost "
                "command_with_client one_more only parse parse_list"
            ),
            "terminalkit.client.transport": (
                "ClientError Conflicting NotAllowed NotFound Rejected ServerAnswer TimedOut Unavailable segment"
            ),
        },
    )

__all__ = [
    "RESET", "ClientError", "ClientSession", "Conflicting", "NotAllowed", "NotFound", "Opened", "Position", "ReceivedFrame",
    "Rejected", "Resource", "ServerAnswer", "ServiceClient", "Signal", "StreamLost", "TimedOut", "Unavailable",
    "command_with_client", "one_more", "only", "parse", "parse_list", "segment",
]  # fmt: skip
