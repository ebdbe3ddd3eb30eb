"""A whole pantry for tests: a real nats-server and `pantry serve` as processes that may be killed."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import attrs

from eventlog.embedded.nats import EmbeddedServer, free_port
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from pantry.domain.registry import REGISTRY
from pantry.readmodel import MODEL
from projections.migrations import migrations_of
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, replayed_copy
from projections.stores.databases import store_at
from tests.support import ROOT
from tests.support.programs import warm
from tests.support.tracker.system import Program
from tests.support.waiting import wait_until

FLOUR = "4006381333931"
MILK = "5901234123457"
API = "/api/v1"
MIGRATIONS = [str(migration) for migration in migrations_of(MODEL, "sqlite")]
"""The migrations of the read model as `pantry migrate` prints them, in their order."""


@attrs.frozen
class Answer:
    """An answer: status (0 if there was none), decoded JSON or text, headers."""

    status: int
    body: Any
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)


class Server:
    """One `pantry serve` with a private read model."""

    def __init__(self, directory: Path, name: str, nats: EmbeddedServer, added: Mapping[str, str]) -> None:
        self.directory = directory
        self.name = name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = directory / f"{name}.db"
        self.program: Program | None = None
        self.module = "pantry"
        """The module that is run. A test may name another version of the program."""
        self.monitored = True
        """Whether it has the address of the broker's monitoring port."""
        self.nats = nats
        self._added = added
        self.http: aiohttp.ClientSession

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the server and of its command line."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PANTRY_")},
            "PANTRY_URL": self.url,
            "PANTRY_NATS_URL": self.nats.url,
            **(
                {"PANTRY_MONITORING_URL": self.nats.monitoring_url}
                if self.monitored and self.nats.monitoring_url is not None
                else {}
            ),
            "PANTRY_DATABASE_URL": f"sqlite:{self.database}",
            "PANTRY_SERVER_HOST": "127.0.0.1",
            "PANTRY_SERVER_PORT": str(self.port),
            "PYTHONPATH": str(ROOT),
            **self._added,
        }

    async def start(self) -> None:
        """Start the server and wait until it is ready; it ends with this process at the latest."""
        await self.begin()
        await self.ready()

    async def begin(self) -> None:
        """Start the server."""
        log = self.directory / f"{self.name}.log"
        with log.open("ab") as output:
            process = await warm.start(self.module, "serve", environment=self.environment, output=output)
        self.program = Program(process, log)

    async def ready(self, timeout: float = 60.0) -> None:  # noqa: ASYNC109 - the bound of a promise
        """Wait until `/readyz` reports that it is ready."""

        async def is_ready() -> bool:
            assert self.program is not None
            assert self.program.process.returncode is None, self.program.log.read_text()[-3000:]
            return (await self.ask("GET", "/readyz")).status == 200

        await wait_until(is_ready, timeout=timeout, every=0.05)

    def remove_database(self) -> None:
        """Remove the read model of the stopped server."""
        for file in self.directory.glob(f"{self.database.name}*"):
            file.unlink()

    async def kill(self) -> None:
        """kill -9."""
        assert self.program is not None
        await self.program.kill()

    async def ask(self, method: str, path: str, document: Any = None, **options: Any) -> Answer:
        """An answer, whatever it is."""
        address = self.url + path
        if document is not None:
            options["json"] = document
        try:
            async with self.http.request(method, address, **options) as answer:
                text = await answer.text(errors="replace")
                body = json.loads(text) if text and "json" in answer.content_type else text
                return Answer(answer.status, body, answer.headers)
        except (aiohttp.ClientError, TimeoutError):
            return Answer(0, None)

    async def get(self, path: str) -> Any:
        """The body of an answer of the API that succeeds."""
        answer = await self.ask("GET", API + path)
        assert answer.status == 200, (path, answer)
        return answer.body

    async def post(self, path: str, document: Any = None, **headers: str) -> Answer:
        """The answer of the API to a POST."""
        return await self.ask("POST", API + path, {} if document is None else document, headers=headers)

    async def create(self, ean13: str = FLOUR, **fields: Any) -> Any:
        """A product that is there then."""
        answer = await self._done(f"/products/{ean13}", {"name": f"product {ean13}", "unit": "kg", **fields})
        return answer.body

    async def move(self, type_: str, quantity: float, ean13: str = FLOUR, **fields: Any) -> Answer:
        """The answer to a movement."""
        return await self.post("/movements", {"product_ean13": ean13, "type": type_, "quantity": quantity, **fields})

    async def moved(self, type_: str, quantity: float, ean13: str = FLOUR, **fields: Any) -> Any:
        """A movement that is booked then."""
        answer = await self._done("/movements", {"product_ean13": ean13, "type": type_, "quantity": quantity, **fields})
        return answer.body

    async def _done(self, path: str, document: Any) -> Answer:
        """The answer to a POST that makes something; where the log is late it is repeated with its key, as the answer says."""
        key = {"Idempotency-Key": uuid4().hex}
        tries = 1
        while (answer := await self.post(path, document, **key)).status == 503 and tries < 10:
            tries += 1
        assert answer.status == 201, answer
        return answer

    async def stock(self, ean13: str = FLOUR) -> float:
        """The stock of a product."""
        return float((await self.get(f"/products/{ean13}/stock"))["current_stock"])

    async def difference_from_a_fold(self) -> str | None:
        """Promise I3: return the difference between the tables, which no server uses, and a fold of the log, or None."""
        async with log_of(self.nats) as log, store_at(self.environment["PANTRY_DATABASE_URL"]) as live:
            head = await log.head()
            await Projector(log, live, MODEL).run(until=head.last)
            async with replayed_copy(log, MODEL, until=head.last) as fresh:
                found = await compare(live, fresh, MODEL)
            return None if found is None else str(found)


@asynccontextmanager
async def log_of(nats: EmbeddedServer) -> AsyncIterator[JetStreamLog]:
    """The event log itself."""
    async with Connection.open(nats.url, name="test") as connection:
        yield JetStreamLog(connection, MODEL.stream, REGISTRY)


@attrs.define
class PantrySystem:
    """A broker and the servers on it."""

    nats: EmbeddedServer
    servers: list[Server]

    @property
    def one(self) -> Server:
        """The first server."""
        return self.servers[0]

    async def events(self, subject: str | None = None) -> list[Any]:
        """Return all events of the log, or of one aggregate, in order."""
        async with log_of(self.nats) as log:
            head = await log.head()
            return [
                event.data
                async for commits in log.follow(after=0, until=head.last)
                for commit in commits
                if subject in {None, commit.subject}
                for event in commit.events
            ]


@asynccontextmanager
async def pantry_system(directory: Path, *, servers: int = 1, **environment: str) -> AsyncIterator[PantrySystem]:
    """Run a broker with the given number of servers, all of them ready."""
    nats = EmbeddedServer(directory / "nats")
    system = PantrySystem(nats, [Server(directory, f"pantry-{number}", nats, environment) for number in range(1, servers + 1)])
    timeout = aiohttp.ClientTimeout(total=15)
    async with nats, aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
        try:
            for server in system.servers:
                server.http = http
                await server.start()
            yield system
        finally:
            for server in system.servers:
                if server.program is not None:
                    await server.kill()
