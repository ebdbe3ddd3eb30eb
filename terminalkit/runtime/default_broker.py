"""A look at the default place of NATS, for a program that was given no other address."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from terminalkit.exits import ExitCode
from terminalkit.failure import Failure

if TYPE_CHECKING:
    from terminalkit.config.loading import LoadedSettings

_PATIENCE = 3.0
_PORT = 4222


def check_default_broker(loaded: LoadedSettings[Any], what: str, *, up: str, looked: bool = False) -> None:
    """Raise Failure if the address of NATS is the default, and no server listens there.

    `what` is the command of the user, `up` the command that starts everything. `looked`: the running system of the user was
    looked for. A chosen address is not checked: the program itself waits for its server.
    """
    if loaded.origins.get("nats_url") != "default":
        return
    url: str = loaded.values.nats_url
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or _PORT), timeout=_PATIENCE).close()
    except OSError:
        hint = f"run '{up}', or set {loaded.prefix}_NATS_URL"
        also = ", and no system of yours with its address runs on this machine" if looked else ""
        raise Failure(what, f"no NATS at {url}{also}", exit_code=ExitCode.UNAVAILABLE, hint=hint) from None
