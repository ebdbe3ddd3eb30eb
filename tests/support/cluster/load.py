"""Clients of a cluster: they write and read all the time, ask another server if one does not answer, and check."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import attrs

from eventlog import Commit
from eventlog.jetstream.log import JetStreamLog
from gctd.domain.repo.events import RepoRegistered
from gctd.readmodel import MODEL as TRACKER
from pantry.domain.ean13 import check_digit
from pantry.domain.product import MovementRecorded, MovementType
from pantry.domain.quantity import ONE
from pantry.readmodel import MODEL as PANTRY
from projections.model import ReadModel
from tests.support.cluster.system import Cluster
from tests.support.tracker import go_repo as gorepo
from tests.support.waiting import wait_until

API = "/api/v1"
_ANSWER = aiohttp.ClientTimeout(total=8, connect=2)
_FINAL = frozenset({200, 201, 202, 422})
"""Answers after which a client asks no more; not 409: too many others were first, it may be asked for again."""


@attrs.frozen
class Done:
    """A request of a client, from its first try until its final answer, in seconds of the monotonic clock."""

    kind: str
    client: int
    began: float
    ended: float
    tries: int


@attrs.define
class Load:
    """Writers of movements, registrars of repositories, readers, and the promises to them.

    `pause` is how many seconds a client waits between two requests. All clients share the first product. Each of the others has
    one writer.
    """

    cluster: Cluster
    http: aiohttp.ClientSession
    products: Sequence[str]
    pause: float
    ending: bool = False
    clients: list[asyncio.Task[None]] = attrs.field(factory=list)
    names: frozenset[tuple[str, int]] = frozenset()
    """Of writers and readers: their kind, their number."""
    done: list[Done] = attrs.field(factory=list)
    accepted: dict[str, tuple[str, int]] = attrs.field(factory=dict)
    """Product and quantity of each movement that was acknowledged, by its id."""
    promised: Counter[str] = attrs.field(factory=Counter)
    """Their sum, by product."""
    registered: list[str] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)
    """Answers that no client may get."""
    latest: int = 0
    """The highest sequence in an answer to a writer."""

    async def ask(self, kind: str, client: int, method: str, path: str, document: Any = None) -> tuple[int, Any, int]:
        """Ask one server after the other, under one key, until there is a final answer; status, body, `Event-Sequence`."""
        urls = self.cluster.ready["pantry" if path.startswith(API) else "gctd"]
        headers = {"Idempotency-Key": str(uuid4())} if method == "POST" else {}
        began, tries = time.monotonic(), 0
        while True:
            tries += 1
            url = urls[(client + tries) % len(urls)]
            try:
                async with self.http.request(method, url + path, json=document, headers=headers, timeout=_ANSWER) as answer:
                    body = await answer.json(content_type=None)
                    if answer.status in _FINAL:
                        self.done.append(Done(kind, client, began, time.monotonic(), tries))
                        return answer.status, body, int(answer.headers.get("Event-Sequence", "0"))
            except (aiohttp.ClientError, TimeoutError, ValueError):
                pass  # not answered, or only in part: it may have taken effect, and is asked for again under the same key
            await asyncio.sleep(0.05)

    async def write(self, client: int) -> None:
        """Book movements, by turns into the shared product and into this client's product."""
        number = 0
        while not self.ending:
            number += 1
            product, quantity = self.products[(client + 1) * (number % 2)], number % 7 + 1
            movement = {"product_ean13": product, "type": "in", "quantity": quantity}
            status, body, sequence = await self.ask("write", client, "POST", f"{API}/movements", movement)
            if status != 201 or body["id"] in self.accepted:
                self.wrong.append(f"movement: {status} {body}")
            else:
                self.accepted[body["id"]] = (product, quantity)
                self.promised[product] += quantity
            self.latest = max(self.latest, sequence)
            await asyncio.sleep(self.pause)

    async def read(self, client: int) -> None:
        """Read the shared product: never less than writers were promised before, nor than was read before."""
        before = 0.0
        while not self.ending:
            promised = self.promised[self.products[0]]
            path = f"{API}/products/{self.products[0]}/stock?min_seq={self.latest}"
            status, body, _ = await self.ask("read", client, "GET", path)
            if status != 200 or body["current_stock"] < max(before, promised):
                self.wrong.append(f"stock: {status} {body}, {before} before, {promised} promised")
            else:
                before = body["current_stock"]
            await asyncio.sleep(self.pause)

    async def register(self, client: int, urls: Sequence[str]) -> None:
        """Register repositories, one every second; a worker looks at each."""
        for url in urls:
            if self.ending:
                return
            status, body, _ = await self.ask("register", client, "POST", "/api/repos", {"repo_url": url})
            if status not in {200, 201, 202}:
                self.wrong.append(f"repository: {status} {body}")
            self.registered.append(url)
            await asyncio.sleep(1)

    async def all_answered(self, since: float) -> None:
        """Wait until each writer and each reader has an answer to a request after that moment."""

        def answered() -> bool:
            return {(done.kind, done.client) for done in self.since(since) if done.began >= since} >= self.names

        await wait_until(answered, timeout=60, every=0.05)

    def since(self, moment: float) -> Iterator[Done]:
        """Yield the requests that were answered after that moment, the latest first."""
        for done in reversed(self.done):
            if done.ended < moment:
                return
            yield done

    # Afterwards

    async def end(self) -> None:
        """Let each client have its last answer."""
        self.ending = True
        async with asyncio.timeout(60):
            await asyncio.gather(*self.clients)

    async def until_looked_at(self) -> None:
        """Wait until a worker has looked at each registered repository."""
        left: list[str] = []

        async def ready() -> bool:
            _, repos, _ = await self.ask("list", 0, "GET", "/api/repos/registered?limit=100")
            states = {repo["URL"]: f"{repo['Status']}: {repo['StatusReason']}" for repo in repos}
            left[:] = [f"{url} {states.get(url)}" for url in self.registered if not states.get(url, "").startswith("ready")]
            return not left

        try:
            await wait_until(ready, timeout=120, every=0.2)
        except AssertionError as error:
            raise AssertionError("\n".join(left)) from error

    async def audit(self) -> list[str]:
        """Return the broken promises, when the clients have ended: losses, repetitions, tables that differ from a fold."""
        return [*self.wrong, *await self._audit_movements(), *await self._audit_repositories(), *await self._audit_tables()]

    async def _audit_movements(self) -> list[str]:
        events = [(commit, event) for commit, event in await _events(self.cluster, PANTRY) if isinstance(event, MovementRecorded)]
        ids = Counter(event.id for _, event in events)
        found = [f"movement {id_} is in the log {ids[id_]} times" for id_ in {*self.accepted, *ids} if ids[id_] != 1]
        found += [f"movement {id_} was never acknowledged" for id_ in ids.keys() - self.accepted.keys()]
        for product in self.products:
            booked = [event for commit, event in events if commit.subject.endswith(product) and event.type is MovementType.IN]
            ledger = sum(event.quantity for event in booked) / ONE
            stocks = [await self._stock(url, product) for url in self.cluster.ready["pantry"]]
            if {ledger, *stocks} != {self.promised[product]}:
                found.append(f"{product}: promised {self.promised[product]}, in the ledger {ledger}, in the tables {stocks}")
        return found

    async def _audit_repositories(self) -> list[str]:
        times = Counter(event.url for _, event in await _events(self.cluster, TRACKER) if isinstance(event, RepoRegistered))
        return [f"{url} is registered {times[url]} times" for url in {*self.registered, *times} if times[url] != 1]

    async def _audit_tables(self) -> list[str]:
        found = []
        for model, variable in ((PANTRY, "PANTRY_DATABASE_URL"), (TRACKER, "GCTD_DATABASE_URL")):
            difference = await self.cluster.difference_from_a_fold(model, self.cluster.environment[variable])
            if difference is not None:
                found.append(f"the tables of {model.name} differ from a fold: {difference}")
        return found

    async def _stock(self, url: str, product: str) -> float:
        async with self.http.get(f"{url}{API}/products/{product}/stock?min_seq={self.latest}") as answer:
            return float((await answer.json())["current_stock"])


@asynccontextmanager
async def loaded(
    cluster: Cluster, directory: Path, *, writers: int = 6, readers: int = 2, repositories: int = 0, pause: float = 0.02
) -> AsyncIterator[Load]:
    """A load on the cluster, until the end of the block or its `end`."""
    urls = await asyncio.to_thread(_repositories, directory / "repositories", repositories)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        load = Load(cluster, http, [_code(number) for number in range(writers + 1)], pause)
        for product in load.products:
            status, body, _ = await load.ask("create", 0, "POST", f"{API}/products/{product}", {"name": product, "unit": "kg"})
            assert status == 201, body
        work: list[Coroutine[Any, Any, None]] = [load.write(number) for number in range(writers)]
        work += [load.read(number) for number in range(readers)]
        work += [load.register(number, urls[number::2]) for number in range(2)]
        load.clients = [asyncio.create_task(each) for each in work]
        load.names = frozenset(
            [*(("write", number) for number in range(writers)), *(("read", number) for number in range(readers))]
        )
        try:
            await load.all_answered(since=0)
            yield load
        finally:
            for client in load.clients:
                client.cancel()
            await asyncio.gather(*load.clients, return_exceptions=True)


async def _events(cluster: Cluster, model: ReadModel) -> list[tuple[Commit, Any]]:
    async with cluster.connected() as connection:
        log = JetStreamLog(connection, model.stream, model.registry)
        until = (await log.head()).last
        found = log.follow(after=0, until=until)
        return [(commit, event.data) async for commits in found for commit in commits for event in commit.events]


def _repositories(directory: Path, count: int) -> list[str]:
    places = [directory / str(number) for number in range(count)]
    for number, place in enumerate(places):
        if number:
            shutil.copytree(places[0], place)
        else:
            gorepo.make(place, kind="single")
    return [place.as_uri() for place in places]


def _code(number: int) -> str:
    first = f"{500000000000 + number}"
    return f"{first}{check_digit(first)}"
