"""The ports of a system on one machine."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from eventlog.embedded import free_port, port_obstacle
from terminalkit import ExitCode

DEFAULT_BASE = 8080
_GCTD, _PANTRY, _GRAPHQL, _MONITORING, _ROUTE, _NATS = 0, 1, 2, 7, 8, 9
"""Offset of the first of a kind above the base. In a cluster each further one is `_APART` above the one before."""
_APART = 10
_BASES = 100
"""How many bases are tried if none is chosen."""


class PortInUse(Exception):
    """A port that was asked for is in use."""

    exit_code = ExitCode.CONFLICT


@attrs.frozen
class Ports:
    """The ports of each kind, one for each of its processes. `note` names the reason for ports other than the usual ones."""

    gctd: tuple[int, ...]
    pantry: tuple[int, ...]
    graphql: tuple[int, ...]
    nats: tuple[int, ...]
    routes: tuple[int, ...]
    monitoring: tuple[int, ...]
    note: str | None = None


def choose(base: int | None, *, services: int, gateways: int, brokers: int) -> Ports:
    """Return the ports above a base.

    Base 0 means any free ports, and None the first free ones from the usual base on. `services` is the number of each service,
    `gateways` of GraphQL gateways, `brokers` of nats-servers. Raises PortInUse if a port above a chosen base is in use.
    """
    if base == 0:
        gctd, pantry, graphql, nats, routes, monitoring = (
            tuple(free_port() for _ in range(count)) for count in (services, services, gateways, brokers, brokers, brokers)
        )
        return Ports(gctd, pantry, graphql, nats, routes, monitoring)

    def above(start: int) -> Ports:
        def of(offset: int, count: int) -> tuple[int, ...]:
            return tuple(start + offset + _APART * number for number in range(count))

        return Ports(
            gctd=of(_GCTD, services),
            pantry=of(_PANTRY, services),
            graphql=of(_GRAPHQL, gateways),
            nats=of(_NATS, brokers),
            routes=of(_ROUTE, brokers),
            monitoring=of(_MONITORING, brokers),
        )

    if base is not None:
        ports = above(base)
        for port in _all(ports):
            if (reason := port_obstacle(port)) is not None:
                raise PortInUse(f"port {port}: {reason}; choose others with --port-base (0: free ports)")
        return ports
    used: int | None = None
    for number in range(_BASES):
        ports = above(DEFAULT_BASE + _APART * number)
        taken = next((port for port in _all(ports) if port_obstacle(port) is not None), None)
        if taken is None:
            note = None if used is None else f"port {used} is in use, so the ports begin at {ports.gctd[0]}"
            return attrs.evolve(ports, note=note)
        used = used or taken
    raise PortInUse(f"port {used} and the next ones are in use; choose others with --port-base (0: free ports)")


def _all(ports: Ports) -> Iterator[int]:
    for kind in (ports.gctd, ports.pantry, ports.graphql, ports.nats, ports.routes, ports.monitoring):
        yield from kind
