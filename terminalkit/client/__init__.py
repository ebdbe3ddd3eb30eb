"""The common base of the clients of all services, and of their command lines.

`errors` has the errors of clients, each with the exit code of a command. `transport` makes requests, `feed` follows an event
stream, `service` is the base of a client of one service.
"""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from terminalkit.client.errors import ClientError, Conflicting, NotAllowed, NotFound, Rejected, TimedOut, Unavailable
    from terminalkit.client.feed import RESET, Opened, Position, ReceivedFrame, Signal, StreamLost
    from terminalkit.client.service import (
        ClientSession,
        Resource,
        ServiceClient,
        command_with_client,
        one_more,
        only,
        parse,
        parse_list,
    )
    from terminalkit.client.transport import ServerAnswer, segment
else:
    __getattr__ = facade(
        __name__,
        {
            "terminalkit.client.errors": "ClientError Conflicting NotAllowed NotFound Rejected TimedOut Unavailable",
            "terminalkit.client.feed": "RESET Opened Position ReceivedFrame Signal StreamLost",
            "terminalkit.client.service": (
                "ClientSession Resource ServiceClient command_with_client one_more only parse parse_list"
            ),
            "terminalkit.client.transport": "ServerAnswer segment",
        },
    )

__all__ = [
    "RESET", "ClientError", "ClientSession", "Conflicting", "NotAllowed", "NotFound", "Opened", "Position", "ReceivedFrame",
    "Rejected", "Resource", "ServerAnswer", "ServiceClient", "Signal", "StreamLost", "TimedOut", "Unavailable",
    "command_with_client", "one_more", "only", "parse", "parse_list", "segment",
]  # fmt: skip
