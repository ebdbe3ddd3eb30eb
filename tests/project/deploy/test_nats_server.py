"""`deploy/nats-server.conf` on a real server: TLS, users, and events that no service can remove."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import attrs
import pytest
import trustme
from nats.aio.client import Client

from eventlog import Unavailable
from eventlog.embedded.die_with_parent import attached_command
from eventlog.embedded.nats import find_binary, free_port
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.keyring import JetStreamKeyring
from tests.support import ROOT
from tests.support.pantry.system import Server
from tests.support.programs import warm
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@attrs.frozen
class Secured:
    """The server: its port, and the file with the authority that its certificate is from."""

    port: int
    authority: Path

    def url(self, user: str, *, scheme: str = "tls", password: str | None = None) -> str:
        return f"{scheme}://{user}:{password or 'secret-' + user}@127.0.0.1:{self.port}"

    @asynccontextmanager
    async def connected(self, user: str, within: float = 20.0, **how: Any) -> AsyncIterator[Connection]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", str(self.authority))  # as for a service
            async with Connection.open(self.url(user, **how), name="test", timeout=within) as connection:
                yield connection


@asynccontextmanager
async def secured(directory: Path) -> AsyncIterator[Secured]:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(directory / "authority.pem"))
    certificate.private_key_pem.write_to_path(str(directory / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(directory / "certificate.pem"))
    port = free_port()
    environment = os.environ | {
        "NATS_NAME": "one",
        "NATS_LISTEN": f"127.0.0.1:{port}",
        "NATS_CERTIFICATE": str(directory / "certificate.pem"),
        "NATS_KEY": str(directory / "key.pem"),
        "NATS_STORE": str(directory / "nats"),
        **{f"{user.upper()}_PASSWORD": f"secret-{user}" for user in ("operator", "pantry", "gctd")},
    }
    log = directory / "nats-server.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *attached_command([str(find_binary()), "--config", str(ROOT / "deploy" / "nats-server.conf")]),
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        server = Secured(port, directory / "authority.pem")

        async def answers() -> bool:
            assert process.returncode is None, log.read_text()
            return b"Server is ready" in log.read_bytes()

        await wait_until(answers, timeout=20)
        yield server
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def apply(server: Secured) -> None:
    environment = os.environ | {"GCTD_NATS_URL": server.url("operator"), "SSL_CERT_FILE": str(server.authority)}
    done = await asyncio.to_thread(warm.run, "projections", "streams", "apply", environment=environment)
    assert done.returncode == 0, done.stderr


class User:
    """A user of the server, and the errors that the server reports to it."""

    def __init__(self) -> None:
        self.client = Client()
        self.errors: list[str] = []

    async def _note(self, error: Exception) -> None:
        self.errors.append(str(error).lower())

    @classmethod
    @asynccontextmanager
    async def of(cls, server: Secured, name: str) -> AsyncIterator[User]:
        user, context = cls(), ssl.create_default_context(cafile=str(server.authority))
        await user.client.connect(server.url(name), tls=context, error_cb=user._note)
        try:
            yield user
        finally:
            await user.client.close()

    async def refused(self, request: str, body: dict[str, Any] | None = None) -> bool:
        """Return whether the server refuses the request by permissions. It answers otherwise."""
        subject = f"$JS.API.{request}"
        asked = asyncio.create_task(self.client.request(subject, json.dumps(body or {}).encode(), timeout=600))
        violation = f'permissions violation for publish to "{subject}"'.lower()
        await wait_until(lambda: asked.done() or any(violation in error for error in self.errors))
        if asked.done():
            asked.result()
            return False
        asked.cancel()
        return True


async def test_a_pantry_works_and_no_service_can_remove_events_or_read_keys_that_are_not_its_own(tmp_path: Path) -> None:
    async with secured(tmp_path) as server, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as http:
        await apply(server)
        nats: Any = SimpleNamespace(url=server.url("pantry"), monitoring_url=None)
        pantry = Server(tmp_path, "pantry", nats, {"SSL_CERT_FILE": str(server.authority)})
        pantry.http = http
        try:
            await pantry.start()
            await pantry.create()
            booked = await pantry.moved("in", 2, created_by="Wilma Wolke")
            assert (await pantry.post("/people:erase", {"name": "Wilma Wolke"})).status == 204
            assert (await pantry.get(f"/movements/{booked['id']}"))["created_by"] == "[erased]"
            await pantry.moved("in", 2, created_by="Wilma Wolke")
            removing: tuple[tuple[str, dict[str, Any] | None], ...] = (
                ("STREAM.DELETE.PANTRY", None),
                ("STREAM.PURGE.PANTRY", None),
                ("STREAM.MSG.DELETE.PANTRY", {"seq": 1}),
                ("STREAM.UPDATE.PANTRY", {"name": "PANTRY"}),
                ("STREAM.DELETE.PANTRY_KEYS", None),
                ("STREAM.SNAPSHOT.PANTRY_KEYS", {"deliver_subject": "x"}),
            )
            for user in ("pantry", "gctd"):
                async with User.of(server, user) as asking:
                    assert [request for request, body in removing if not await asking.refused(request, body)] == []
            async with User.of(server, "gctd") as tracker, server.connected("pantry") as own:
                keys = JetStreamKeyring(own, "PANTRY_KEYS", "pantry.key")
                [key] = await keys.after(0)
                assert await tracker.refused("STREAM.MSG.GET.PANTRY_KEYS", {"seq": key.place})
                assert await tracker.refused("DIRECT.GET.PANTRY_KEYS", {"seq": key.place})
                assert not await tracker.refused("STREAM.INFO.PANTRY")
            async with server.connected("operator") as operator:
                info = await call(operator, "STREAM.INFO.PANTRY")
                assert (info["state"]["messages"], info["state"].get("num_deleted", 0)) == (5, 0)
        finally:
            if pantry.program is not None:
                await pantry.kill()


async def test_a_wrong_password_is_refused_and_so_is_a_server_of_an_unknown_authority(tmp_path: Path) -> None:
    async with secured(tmp_path) as server:
        with pytest.raises(Unavailable):
            async with server.connected("pantry", within=1.5, password="wrong"):
                pass
        with pytest.raises(Unavailable):
            async with Connection.open(server.url("pantry"), name="test", timeout=1):
                pass
