"""A private nats-server as a child process."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from eventlog.embedded.child import ChildServer, DataDirectoryInUse
    from eventlog.embedded.die_with_parent import attached_command
    from eventlog.embedded.nats import (
        OLDEST_VERSION,
        BrokerAccess,
        BrokerUser,
        CredentialsDamaged,
        DiskRoom,
        EmbeddedServer,
        Membership,
        ServerFailed,
        free_port,
        next_free_port,
        port_obstacle,
    )
else:
    __getattr__ = facade(
        __name__,
        {
            "eventlog.embedded.child": "ChildServer DataDirectoryInUse",
            "eventlog.embedded.die_with_parent": "attached_command",
            "eventlog.embedded.nats": (
                "OLDEST_VERSION BrokerAccess BrokerUser CredentialsDamaged DiskRoom EmbeddedServer Membership "
                "ServerFailed free_port next_free_port port_obstacle"
            ),
        },
    )

__all__ = [
    "OLDEST_VERSION", "BrokerAccess", "BrokerUser", "ChildServer", "CredentialsDamaged", "DataDirectoryInUse", "DiskRoom",
    "EmbeddedServer", "Membership", "ServerFailed", "attached_command", "free_port", "next_free_port", "port_obstacle",
]  # fmt: skip
