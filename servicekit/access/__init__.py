"""Personal tokens of a service and the sessions of browsers: events in its log, hashed secrets, and their check at requests."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from servicekit.access.service_access import SESSION, Devices, TokenDirectory, caller_with, holder
    from servicekit.access.tokens import Session, SessionText, TokenModel, TokenText, digest, with_tokens
else:
    __getattr__ = facade(
        __name__,
        {
            "servicekit.access.service_access": "SESSION Devices TokenDirectory caller_with holder",
            "servicekit.access.tokens": "Session SessionText TokenModel TokenText digest with_tokens",
        },
    )

__all__ = [
    "SESSION", "Devices", "Session", "SessionText", "TokenDirectory", "TokenModel", "TokenText", "caller_with", "digest",
    "holder", "with_tokens",
]  # fmt: skip
