"""Rule for the hosts that git may connect to: public hosts, and hosts that the operator lists."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import attrs

from gctd.domain.errors import BadInput
from gctd.domain.remote.special_addresses import is_public

IPAddress = IPv4Address | IPv6Address

_LOCAL_SUFFIXES = ("localhost", "local", "internal", "home.arpa")
_NAT64 = ip_network("64:ff9b::/96")
_IPV4_COMPATIBLE = ip_network("::/96")


@attrs.frozen
class AddressPolicy:
    """Exceptions to the rule that hosts are public: host names and networks outside the public internet."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str], *, field: str = "private_hosts") -> AddressPolicy:
        """Parse a list of host names, addresses and networks (`git.example.internal`, `10.0.0.0/8`).

        Raises BadInput for any other entry.
        """
        hosts: set[str] = set()
        networks: list[IPv4Network | IPv6Network] = []
        for entry in entries:
            text = entry.strip().lower().removeprefix("[").removesuffix("]")
            try:
                networks.append(ip_network(text))
            except ValueError:
                if not text or "/" in text or text.replace(".", "").isdigit():
                    raise BadInput(field, f"not a host name, an address or a network: {entry!r}") from None
                hosts.add(text)
        return cls(frozenset(hosts), tuple(networks))

    def name_problem(self, host: str) -> str | None:
        """Return the reason to refuse a host by its name alone; None if the name is allowed."""
        if host in self.hosts:
            return None
        try:
            address = ip_address(host)
        except ValueError:
            if "." not in host or any(host == suffix or host.endswith(f".{suffix}") for suffix in _LOCAL_SUFFIXES):
                return f"{host} is not a public host name"
            return None
        return self.address_problem(host, address)

    def address_problem(self, host: str, address: IPAddress) -> str | None:
        """Return the reason to refuse a host at this address; None if the address is allowed."""
        if host in self.hosts:
            return None
        listed = any(address in network for network in self.networks)
        inner = embedded(address)
        if inner is not None and (listed or (isinstance(address, IPv6Address) and address.ipv4_mapped is not None)):
            return self.address_problem(host, inner)  # a listed NAT64 network allows public hosts only
        if listed:
            return None
        if not is_public(address):
            return (
                f"{host} is at {address}, which is not a public address"
                if str(address) != host
                else f"{host} is not a public address"
            )
        return None


def embedded(address: IPAddress) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, 6to4, Teredo or NAT64 (RFC 4291, 3056, 4380, 6052)."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


PUBLIC_ONLY = AddressPolicy()
