"""Three real nats-servers on loopback that form a cluster: each may be killed, started again on its data, paused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors

from eventlog.embedded.nats import EmbeddedServer, Membership, free_ports
from tests.support.log.nats import plain_client

SIZE = 3


def members(directory: Path) -> Sequence[EmbeddedServer]:
    """Return the servers, not yet started. They do not advertise each other, or clients would find ways around a proxy."""
    ports, routes = free_ports(SIZE), tuple(free_ports(SIZE))
    return [
        EmbeddedServer(directory / f"n{n}", port=port, name=f"n{n}", membership=Membership(route, routes, advertise=False))
        for n, (port, route) in enumerate(zip(ports, routes, strict=True))
    ]


class Cluster:
    """The servers, which run."""

    def __init__(self, nodes: Sequence[EmbeddedServer]) -> None:
        self.nodes = nodes

    @property
    def urls(self) -> str:
        """The addresses of all servers, as a connection takes them."""
        return ",".join(node.url for node in self.nodes)

    @classmethod
    @asynccontextmanager
    async def running(cls, directory: Path) -> AsyncIterator[Cluster]:
        """Start it, wait until it takes streams, and end it."""
        async with AsyncExitStack() as stack:
            cluster = cls(members(directory))
            await asyncio.gather(*(stack.enter_async_context(node) for node in cluster.nodes))
            await cluster.ready()
            yield cluster

    async def ready(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - the bound of a test
        """Wait until all servers are members and one leads."""
        async with asyncio.timeout(timeout), plain_client(self.urls.split(",")) as client:
            while True:
                try:
                    await client.jetstream().add_stream(name="READY", subjects=["ready"], num_replicas=SIZE)
                    await client.jetstream().delete_stream("READY")
                except (nats.errors.Error, nats.js.errors.Error):
                    await asyncio.sleep(0.1)
                else:
                    return

    async def leader(self, stream: str) -> EmbeddedServer:
        """The server that leads a stream; waits for an election to end, 20 s at most."""
        async with asyncio.timeout(20), plain_client(self.urls.split(",")) as client:
            while True:
                try:
                    reply = await client.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=1)
                except nats.errors.Error:
                    await asyncio.sleep(0.1)
                    continue
                info: dict[str, Any] = json.loads(reply.data)
                name = info.get("cluster", {}).get("leader")
                if name:
                    return next(node for node in self.nodes if node.name == name)
                await asyncio.sleep(0.1)


__all__ = ["Cluster", "members"]
