"""`graphql-fn serve` as a process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs

from tests.support import ROOT
from tests.support.programs import warm
from tests.support.tracker.system import Program


@attrs.frozen
class Answer:
    """An answer: status, decoded JSON or text, headers."""

    status: int
    body: Any
    headers: Mapping[str, str]


@attrs.frozen
class Gateway:
    """A running gateway; `url` is its address."""

    program: Program
    url: str
    http: aiohttp.ClientSession

    @property
    def function(self) -> str:
        """The address of its function."""
        return f"{self.url}/function/graphql"

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in self.program.log.read_text().splitlines()]

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        """An answer, whatever it is."""
        async with self.http.request(method, self.url + path, **options) as answer:
            text = await answer.text()
            return Answer(answer.status, json.loads(text) if text and "json" in answer.content_type else text, answer.headers)

    async def post(self, body: Any, content_type: str | None = "text/plain", **headers: str) -> Answer:
        """The answer to a body of this type (None: of none)."""
        skip = ["Content-Type"] if content_type is None else []
        given = {**headers, **({} if content_type is None else {"Content-Type": content_type})}
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return await self.ask("POST", "/function/graphql", data=data, headers=given, skip_auto_headers=skip)


@asynccontextmanager
async def gateway(directory: Path, **environment: str) -> AsyncIterator[Gateway]:
    """A gateway on a free port, with these settings; it has ended afterwards."""
    log = directory / "graphql-fn.log"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHQL_")}
    settings = {**inherited, "PYTHONPATH": str(ROOT), "GRAPHQL_LOG_FORMAT": "json", **environment}
    out, their_out = os.pipe()
    with log.open("wb") as errors, os.fdopen(their_out, "wb") as writing:
        streams = (None, writing.fileno(), errors.fileno())
        process = await warm.fork("graphql_fn", "serve", "--port", "0", environment=settings, streams=streams)
    program = Program(process, log)
    lines, reading = await warm.stream(out)
    try:
        line = await asyncio.wait_for(lines.readline(), 30)
        assert line.startswith(b"listening on "), log.read_text()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as http:
            yield Gateway(program, line.decode().split()[-1], http)
    finally:
        await program.kill()
        reading.close()
