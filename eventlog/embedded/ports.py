"""Free ports, for programs that get their address before they listen."""

from __future__ import annotations

import os
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


def obstacle(port: int) -> str | None:
    """Return the reason why a port of 127.0.0.1 cannot be listened on; None if it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return os.strerror(error.errno or 0)
    return None


def next_free_port(first: int) -> int:
    """Return the first port of 127.0.0.1 from `first` on that can be listened on; any free one if the next hundred cannot."""
    return next((port for port in range(first, first + 100) if obstacle(port) is None), 0) or free_port()
