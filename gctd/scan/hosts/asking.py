"""Questions to the API of a git host. An answer arrives in time, whatever the host does. It may have no facts."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import aiohttp
import attrs
import structlog
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gctd.domain.remote.addresses import AddressPolicy, IPAddress
from gctd.domain.remote.urls import RepoUrl
from gctd.scan.errors import GitError
from gctd.scan.git.network import public_addresses
from gctd.scan.hosts.answers import Answers, KeptAnswer
from gctd.scan.hosts.apis import Api, Request, api_of
from gctd.scan.hosts.facts import NOTHING, Facts

SECONDS = 5.0
"""Limit for all requests about one repository, including the look-up of the host."""
LARGEST = 1024 * 1024
"""Bytes of an answer."""
_AFTER_FAILURE = 60.0
_LONGEST_PAUSE = 3600.0
_PORTS = {"http": 80, "https": 443}

_log = structlog.get_logger(__name__)


class _Unusable(Exception):
    """The API gave no answer that can be used. `pause`: seconds for which it should not be asked again."""

    def __init__(self, reason: str, pause: float = _AFTER_FAILURE) -> None:
        super().__init__(reason)
        self.pause = pause


@attrs.frozen(kw_only=True)
class Hosts:
    """The git hosts whose APIs are asked.

    `addresses`: hosts outside the public internet that may be connected to; the other ones are refused, as for git. `proxy`: the
    operator's; it then looks the hosts up. `ca_file`: certificates to trust.
    """

    apis: Mapping[str, Api]
    answers: Answers
    addresses: AddressPolicy
    proxy: str | None = None
    ca_file: Path | None = None
    seconds: float = SECONDS

    async def facts(self, url: RepoUrl) -> Facts:
        """Return the host's facts about a repository; the last known facts if it does not answer now. Raises no errors."""
        api = api_of(url, self.apis) if url.host else None
        requests = api.ask(url.path) if api is not None else ()
        if api is None or not requests:
            return NOTHING
        known = [self.answers.get(api.url + request.path) for request in requests]
        if not all(answer is not None and answer.is_fresh() for answer in known) and self._may_ask(api):
            try:
                async with asyncio.timeout(self.seconds):
                    known = await self._ask(api, requests, known)
            except (_Unusable, GitError, aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
                pause = error.pause if isinstance(error, _Unusable) else _AFTER_FAILURE
                reason = str(error) or f"no answer within {self.seconds:.0f} s"
                _log.warning("the host's API gives no metadata", api=api.url, reason=reason, pause=round(pause))
                self.answers.pause(api.url, time.time() + pause)
        facts = NOTHING
        for answer in known:
            facts = facts.or_else(answer.facts if answer is not None else NOTHING)
        return facts

    def _may_ask(self, api: Api) -> bool:
        """Report whether no pause is active. A time too far ahead comes from a wrong clock, and does not count."""
        left = self.answers.paused_until(api.url) - time.time()
        return not 0 < left <= _LONGEST_PAUSE

    async def _ask(self, api: Api, requests: Sequence[Request], known: Sequence[KeptAnswer | None]) -> list[KeptAnswer | None]:
        found: list[KeptAnswer | None] = []
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=await self._resolver(api), ssl=self._trust()),
            headers={"Accept": api.accept, "Accept-Encoding": "identity", "User-Agent": "gctd"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            for request, answer in zip(requests, known, strict=True):
                found.append(await self._answer(session, api, request, answer))
        return found

    async def _answer(self, session: aiohttp.ClientSession, api: Api, request: Request, known: KeptAnswer | None) -> KeptAnswer:
        headers = {"Authorization": f"Bearer {api.token}"} if api.token is not None else {}
        if known is not None and known.etag is not None:
            headers["If-None-Match"] = known.etag
        url = URL(api.url + request.path, encoded=True)
        async with session.get(url, headers=headers, proxy=self.proxy, allow_redirects=False) as response:
            if response.status == HTTPStatus.NOT_MODIFIED and known is not None:
                answer = attrs.evolve(known, at=time.time())
            elif response.status == HTTPStatus.OK:
                etag = response.headers.get("ETag")
                facts = request.read(await _body(response))
                answer = KeptAnswer(facts=facts, at=time.time(), etag=etag if etag and len(etag) <= 200 else None)
            elif response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):  # private, or not there
                answer = KeptAnswer(at=time.time())
            else:
                raise _Unusable(f"status {response.status}", _pause(response))
        self.answers.put(api.url + request.path, answer)
        return answer

    async def _resolver(self, api: Api) -> AbstractResolver:
        if self.proxy is not None:
            return aiohttp.ThreadedResolver()
        url = URL(api.url)
        assert url.host is not None, "an API has an address"
        return _PinnedResolver(await public_addresses(url.host, url.port or _PORTS[url.scheme], self.addresses))

    def _trust(self) -> ssl.SSLContext | bool:
        return True if self.ca_file is None else ssl.create_default_context(cafile=self.ca_file)


class _PinnedResolver(AbstractResolver):
    """Returns the checked addresses, independent of a second look-up."""

    def __init__(self, addresses: Sequence[IPAddress]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        families = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=families[address.version],
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
            if family in (socket.AF_UNSPEC, families[address.version])
        ]

    async def close(self) -> None:
        """There is nothing to close."""


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > LARGEST:
            raise _Unusable(f"an answer of more than {LARGEST} bytes")
    return bytes(body)


def _pause(response: aiohttp.ClientResponse) -> float:
    """Return the pause that the API asks for, in seconds from now."""
    headers = response.headers
    retry = headers.get("Retry-After", "")
    if retry.isdecimal():
        return min(float(retry), _LONGEST_PAUSE)
    remaining = headers.get("X-RateLimit-Remaining") or headers.get("RateLimit-Remaining")
    reset = headers.get("X-RateLimit-Reset") or headers.get("RateLimit-Reset") or ""
    if remaining == "0" and reset.isdecimal():
        return min(max(float(reset) - time.time(), _AFTER_FAILURE), _LONGEST_PAUSE)
    return _AFTER_FAILURE
