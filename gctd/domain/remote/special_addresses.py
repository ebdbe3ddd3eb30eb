"""The special-purpose address registries of IANA (RFC 6890), as a private table.

The table of Python's `ipaddress` differs between releases, including patch releases. This table is the same on every Python. It
is narrower than "globally reachable" in the registries: anycast, AS112 and overlay addresses are public, and serve no git host.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

AS_OF = "2025-10-09"
"""The date of the registries that the table was made from (iana-ipv4-special-registry, iana-ipv6-special-registry)."""

NOT_PUBLIC_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared by carriers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, metadata of clouds
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private use
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
PUBLIC_IPV6 = IPv6Network("2000::/3")
"""The only range of IPv6 from which public addresses are given out."""
NOT_PUBLIC_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Report whether a host of the public internet can have this address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_IPV4)
    return address in PUBLIC_IPV6 and not any(address in network for network in NOT_PUBLIC_IPV6)
