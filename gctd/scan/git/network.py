"""The addresses of a host: they are looked up once and checked, and git is bound to them."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

from gctd.domain.remote.addresses import AddressPolicy, IPAddress
from gctd.scan.errors import GitError

LOOK_UP = 15.0
"""Seconds for the look-up of a name."""


async def public_addresses(host: str, port: int, policy: AddressPolicy) -> list[IPAddress]:
    """Return the addresses of a host, all of which are allowed.

    Raises GitError if one of them is not allowed (a name that points inside is refused as a whole), or if the host has no
    address.
    """
    problem = policy.name_problem(host)
    if problem:
        raise GitError(f"refused: {problem}", permanent=True)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LOOK_UP):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError) as error:
        raise GitError(f"cannot resolve the host {host}") from error
    addresses = list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))
    for address in addresses:
        problem = policy.address_problem(host, address)
        if problem:
            raise GitError(f"refused: {problem}", permanent=True)
    return addresses
