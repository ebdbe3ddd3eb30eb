"""Public addresses: from a table of the program, so that every Python gives the same answer."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from gctd.domain.remote.addresses import PUBLIC_ONLY, AddressPolicy
from gctd.domain.remote.special_addresses import NOT_PUBLIC_IPV4, NOT_PUBLIC_IPV6

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "140.82.121.3", "192.0.1.1", "198.17.255.255"),
    *("2606:50c0:8000::153", "2a04:4e42::81", "2620:4f:7fff::1"),
]
NOT_PUBLIC = [
    *("192.0.0.192", "192.0.0.9", "192.88.99.1", "100.64.0.1", "169.254.169.254"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.251"),
    *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "64:ff9b::1.1.1.1", "64:ff9b:1::1", "100::1", "100:0:0:1::1"),
    *("2001::1", "2001:db8::1", "2002:808:808::1", "2620:4f:8000::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1"),
    *("fc00::1", "fd00::1", "fe80::1", "fec0::1", "ff02::1"),
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_may_be_connected_to(text: str) -> None:
    assert PUBLIC_ONLY.address_problem("git.example.com", ip_address(text)) is None


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_special_purpose_addresses_may_not(text: str) -> None:
    assert "not a public address" in (PUBLIC_ONLY.address_problem("git.example.com", ip_address(text)) or "")


@pytest.mark.parametrize("network", [*NOT_PUBLIC_IPV4, *NOT_PUBLIC_IPV6])
def test_a_special_range_is_refused_from_its_first_address_to_its_last(network: object) -> None:
    first_and_last = ip_network(str(network))
    for address in (first_and_last[0], first_and_last[-1]):
        assert PUBLIC_ONLY.address_problem("git.example.com", address) is not None


def test_addresses_on_the_list_of_the_operator_are_allowed() -> None:
    policy = AddressPolicy.of(["10.0.0.0/8", "64:ff9b::/96"])
    assert policy.address_problem("a", ip_address("10.1.2.3")) is None
    assert policy.address_problem("a", ip_address("::ffff:10.1.2.3")) is None
    assert policy.address_problem("a", ip_address("64:ff9b::1.1.1.1")) is None
    assert policy.address_problem("a", ip_address("64:ff9b::127.0.0.1")) is not None
    assert policy.address_problem("a", ip_address("192.168.0.1")) is not None
