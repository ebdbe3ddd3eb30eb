"""One way to make a service: log, read model and HTTP put together."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from servicekit.broker.monitoring import BrokerState, NotSeen, addresses, look_at_all
    from servicekit.cli.tokens import token_commands
    from servicekit.feed import CommitFrames, EventChange
    from servicekit.parts import Part, ProcessParts
    from servicekit.read_side import NotWritten, ReadSide
    from servicekit.replica import Broker, ReadReplica, ReplicaTransaction, connected
    from servicekit.server import Application, check_reachable, guard_of, serve_application, shared_token
    from servicekit.service import (
        Parts,
        Running,
        Service,
        answer,
    )
    from servicekit.settings import ServerSettings, ServiceSettings
    from servicekit.status_route import EXAMPLE, projections_route
    from servicekit.supervision import Startable, describe, keep_running, mend
else:
    __getattr__ = facade(
        __name__,
        {
            "servicekit.broker.monitoring": "BrokerState NotSeen addresses look_at_all",
            "servicekit.cli.tokens": "token_commands",
            "servicekit.feed": "CommitFrames EventChange",
            "servicekit.parts": "Part ProcessParts",
            "servicekit.read_side": "NotWritten ReadSide",
            "servicekit.replica": "Broker ReadReplica ReplicaTransaction connected",
            "servicekit.server": "Application check_reachable guard_of serve_application shared_token",
            "servicekit.service": "Service Parts Running answer",
            "servicekit.settings": "ServerSettings ServiceSettings",
            "servicekit.status_route": "EXAMPLE projections_route",
            "servicekit.supervision": "Startable describe keep_running mend",
        },
    )

__all__ = [
    "EXAMPLE", "Application", "Broker", "BrokerState", "CommitFrames", "EventChange", "NotSeen", "NotWritten", "Part", "Parts",
    "ProcessParts", "ReadReplica", "ReadSide", "ReplicaTransaction", "Running", "ServerSettings", "Service", "ServiceSettings",
    "Startable", "addresses", "answer", "check_reachable", "connected", "describe", "guard_of",
    "keep_running", "look_at_all", "mend", "projections_route", "serve_application", "shared_token",
    "token_commands",
]  # fmt: skip
