"""Forwarded headers: believed of named proxies, and of no other client."""

from __future__ import annotations

import pytest
import structlog.testing

from httpkit.server.guard import Guard, TrustedProxies
from tests.httpkit.raw import ask
from tests.httpkit.shop import open_shop

pytestmark = pytest.mark.real

HERE = TrustedProxies.of(["127.0.0.1"])
BOTH = TrustedProxies.of(["127.0.0.0/8", "10.0.0.0/8"])


@pytest.mark.parametrize(
    ("proxies", "given", "remote"),
    [
        (TrustedProxies(), "X-Forwarded-For: 203.0.113.9", "127.0.0.1"),
        (TrustedProxies.of(["10.0.0.0/8"]), "X-Forwarded-For: 203.0.113.9", "127.0.0.1"),
        (HERE, "X-Forwarded-For: 203.0.113.9", "203.0.113.9"),
        (HERE, "X-Forwarded-For: 198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (HERE, "X-Forwarded-For: 198.51.100.1\nX-Forwarded-For: 203.0.113.9", "203.0.113.9"),
        (BOTH, "X-Forwarded-For: 198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
        (HERE, "X-Forwarded-For: <script>", "127.0.0.1"),
        (HERE, "X-Forwarded-For:", "127.0.0.1"),
        (HERE, "X-Forwarded-For: ::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
async def test_the_address_of_the_client_is_the_last_one_that_no_trusted_proxy_has(
    proxies: TrustedProxies, given: str, remote: str
) -> None:
    async with open_shop(guard=Guard(proxies=proxies)) as shop:
        with structlog.testing.capture_logs() as lines:
            assert (await ask(shop.port, f"GET /things\n{given}")).status == 200
    assert [line["remote"] for line in lines if line["event"] == "request"] == [remote]


@pytest.mark.parametrize(
    ("proxies", "given", "secure"),
    [
        (TrustedProxies(), "https", False),
        (HERE, "https", True),
        (HERE, "HTTPS", True),
        (HERE, "http", False),
        (HERE, "https, http", False),
        (HERE, "https\nX-Forwarded-Proto: https", False),
    ],
)
async def test_the_cookie_is_for_secure_connections_if_a_trusted_proxy_has_one(
    proxies: TrustedProxies, given: str, secure: bool
) -> None:
    guard = Guard(token="t0p-secret", proxies=proxies)
    async with open_shop(guard=guard) as shop:
        head = f"POST /api/session\nAuthorization: Bearer t0p-secret\nX-Forwarded-Proto: {given}"
        reply = await ask(shop.port, head)
    assert ("; Secure" in reply.headers["set-cookie"]) is secure
