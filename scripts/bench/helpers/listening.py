"""Waiting for the server of a measurement."""

from __future__ import annotations

import socket
import time


def until_open(port: int, *, seconds: float = 60.0) -> None:
    """Return when something on this machine listens on a port. Raises TimeoutError after that many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")
