"""Personal tokens of a service and the sessions of browsers: events in its log, hashed secrets, and their check at requests."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from servicekit.access.devices import Devices
    from servicekit.access.directory import TokenDirectory
    from servicekit.access.issuing import SessionText, TokenText, digest
    from servicekit.access.model import TokenModel, with_tokens
    from servicekit.access.service_access import SESSION, caller_with, holder
    from servicekit.access.tokens import Session
else:
    __getattr__ = facade(
        __name__,
        {
            "servicekit.access.devices": "Devices",
            "servicekit.access.directory": "TokenDirectory",
            "servicekit.access.issuing": "SessionText TokenText digest",
            "servicekit.access.model": "TokenModel with_tokens",
            "servicekit.access.service_access": "SESSION caller_with holder",
            "servicekit.access.tokens": "Session",
        },
    )

__all__ = [
    "SESSION", "Devices", "Session", "SessionText", "TokenDirectory", "TokenModel", "TokenText", "caller_with", "digest",
    "holder", "with_tokens",
]  # fmt: skip
