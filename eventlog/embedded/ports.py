"""Free ports, for programs that get their address before they listen."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

_LOWEST, _HIGHEST = 12_000, 31_999
"""Below the ports that Linux gives to connections (`net.ipv4.ip_local_port_range`, from 32768 on): a port of that range, free a
moment ago, may be in use by the time a program listens on it, or listens on it again."""

_dice = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return `count` ports of 127.0.0.1 without a listener, all different."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = _dice.randint(_LOWEST, _HIGHEST)
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _given:
                _given.add(port)
                found.append(port)
    return found


def free_port() -> int:
    """Return a port of 127.0.0.1 without a listener."""
    return free_ports(1)[0]


__all__ = ["free_port", "free_ports"]
