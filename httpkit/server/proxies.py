"""The client behind a proxy: forwarded headers count only from proxies that the operator names."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Self

import attrs
from aiohttp import web

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED_FOR, FORWARDED_PROTO = "X-Forwarded-For", "X-Forwarded-Proto"


@attrs.frozen
class TrustedProxies:
    """The addresses of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Return the proxies of these addresses and networks.

        Raises ValueError for another text, and for a network of all addresses: any client could then take any address.
        """
        networks = tuple(ipaddress.ip_network(entry) for entry in entries)
        if any(network.prefixlen == 0 for network in networks):
            raise ValueError("a network of all addresses lets every client write forwarded headers: name the proxies")
        return cls(networks)

    def client(self, request: web.Request) -> str | None:
        """Return the address of the client: the last one in `X-Forwarded-For` that is not a trusted proxy."""
        address = request.remote
        if not self._trusts(address):
            return address
        for given in reversed(_entries(request)):
            if _parsed(given) is None:
                return address
            address = given
            if not self._trusts(given):
                break
        return address

    def is_secure(self, request: web.Request) -> bool:
        """Return whether the client's connection has TLS, to this server or to a trusted proxy."""
        if request.secure:
            return True
        given = request.headers.getall(FORWARDED_PROTO, [])
        return len(given) == 1 and given[0].strip().lower() == "https" and self._trusts(request.remote)

    def _trusts(self, text: str | None) -> bool:
        address = _parsed(text)
        return address is not None and any(address in network for network in self.networks)


def _entries(request: web.Request) -> list[str]:
    lines = request.headers.getall(FORWARDED_FOR, [])
    return [entry for line in lines for part in line.split(",") if (entry := part.strip())]


def _parsed(text: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
