"""Three real nats-servers on loopback that form a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors

from eventlog import launch
from eventlog.embedded import BINARY_VARIABLE, GIB
from tests.support.nats import plain_client
from tests.support.ports import free_ports

SIZE = 3


class Node:
    """One server of the cluster: may be killed, started again on its data, paused."""

    def __init__(self, name: str, port: int, config: Path) -> None:
        self.name = name
        self.url = f"nats://127.0.0.1:{port}"
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = launch.attached([_binary(), "--config", str(self._config)], end=signal.SIGKILL)
        with self._config.with_suffix(".out").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class Cluster:
    """The servers, with JetStream synced at every write."""

    def __init__(self, directory: Path) -> None:
        self.nodes = list(_nodes(directory))

    @property
    def urls(self) -> str:
        """The addresses of all servers, as a connection takes them."""
        return ",".join(node.url for node in self.nodes)

    @classmethod
    @asynccontextmanager
    async def running(cls, directory: Path) -> AsyncIterator[Cluster]:
        """Start it, wait until it takes streams, and kill it at the end."""
        cluster = cls(directory)
        try:
            for node in cluster.nodes:
                node.start()
            await cluster.ready()
            yield cluster
        finally:
            for node in cluster.nodes:
                node.kill()

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

    async def leader(self, stream: str) -> Node:
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


def _nodes(directory: Path) -> Iterator[Node]:
    ports = free_ports(2 * SIZE)
    routes = [f"nats://127.0.0.1:{port}" for port in ports[SIZE:]]
    for number in range(SIZE):
        home = directory / f"n{number}"
        home.mkdir(parents=True)
        config = home / "nats-server.conf"
        settings = {
            "server_name": f"n{number}",
            "listen": f"127.0.0.1:{ports[number]}",
            "log_file": str(home / "nats-server.log"),
            "jetstream": {"store_dir": str(home), "sync_interval": "always", "max_file_store": 8 * GIB},
            "cluster": {
                "name": "test",
                "listen": f"127.0.0.1:{ports[SIZE + number]}",
                "routes": routes,
                "no_advertise": True,  # or clients would find ways around a proxy
            },
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        yield Node(f"n{number}", ports[number], config)


def _binary() -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(os.environ.get(BINARY_VARIABLE, "nats-server"), path=path)
    assert found is not None, "no nats-server"
    return found


__all__ = ["Cluster", "Node"]
