"""One way to make a service: log, read model and HTTP put together."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from servicekit.broker_watch import BrokerState, NotSeen, look_at_brokers, monitoring_addresses
    from servicekit.issued_tokens import token_commands
    from servicekit.parts import Part, ProcessParts
    from servicekit.read_side import CommitFrames, EventChange, NotWritten, ReadSide
    from servicekit.replica import Broker, ReadReplica, ReplicaTransaction, connected
    from servicekit.server import Application, check_reachable, guard_of, serve_application, shared_token
    from servicekit.service import Parts, Running, Service, answer
    from servicekit.settings import ServerSettings, ServiceSettings
    from servicekit.status_route import PROJECTIONS_EXAMPLE, projections_route
    from servicekit.supervision import Startable, describe_exit, keep_running, mend
else:
    __getattr__ = facade(
        __name__,
        {
            "servicekit.broker_watch": "BrokerState NotSeen look_at_brokers monitoring_addresses",
            "servicekit.issued_tokens": "token_commands",
            "servicekit.parts": "Part ProcessParts",
            "servicekit.read_side": "CommitFrames EventChange NotWritten ReadSide",
            "servicekit.replica": "Broker ReadReplica ReplicaTransaction connected",
            "servicekit.server": "Application check_reachable guard_of serve_application shared_token",
            "servicekit.service": "Parts Running Service answer",
            "servicekit.settings": "ServerSettings ServiceSettings",
            "servicekit.status_route": "PROJECTIONS_EXAMPLE projections_route",
            "servicekit.supervision": "Startable describe_exit keep_running mend",
        },
    )

__all__ = [
    "PROJECTIONS_EXAMPLE", "Application", "Broker", "BrokerState", "CommitFrames", "EventChange", "NotSeen", "NotWritten", "Part",
    "Parts", "ProcessParts", "ReadReplica", "ReadSide", "ReplicaTransaction", "Running", "ServerSettings", "Service",
    "ServiceSettings", "Startable", "answer", "check_reachable", "connected", "describe_exit", "guard_of", "keep_running",
    "look_at_brokers", "mend", "monitoring_addresses", "projections_route", "serve_application", "shared_token", "token_commands",
]  # fmt: skip
