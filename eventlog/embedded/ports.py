"""Free ports, for programs that are told where to listen before they do."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

_LOWEST, _HIGHEST = 12_000, 31_999
"""Below those that Linux gives to connections (`net.ipv4.ip_local_port_range`, from 32768 on): one of these, free a moment ago,
may be anybody's by the time a program listens on it, or listens on it again."""

_dice = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """So many ports of 127.0.0.1 that nobody listens on, none of them given before."""
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
    """A port of 127.0.0.1 that nobody listens on."""
    return free_ports(1)[0]


__all__ = ["free_port", "free_ports"]
