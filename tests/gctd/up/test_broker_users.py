"""The broker of `gctd up` asks for a password, and each service may do what it needs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import nats
import nats.errors
import pytest

from eventlog.admin import reconcile
from eventlog.embedded.access import BrokerAccess, CredentialsDamaged
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.transport.connection import Connection
from gctd.settings import Settings as TrackerSettings
from gctd.up.users import OPERATOR, PANTRY, TRACKER, USERS
from gctd.wiring.broker import declarations, open_broker
from tests.support import ROOT


def denied(name: str) -> Sequence[str]:
    """A list of deploy/nats-server.conf."""
    text = (ROOT / "deploy" / "nats-server.conf").read_text()
    return re.findall(r'"([^"]+)"', text.split(f"{name}: [")[1].split("]")[0])


def test_the_permissions_are_those_of_the_configuration_for_companies() -> None:
    assert list(PANTRY.publish_denied) == denied("SERVICE_DENIED")
    assert list(TRACKER.publish_denied) == denied("TRACKER_DENIED")


def test_passwords_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    file = tmp_path / "data" / "credentials.json"
    first = BrokerAccess.kept_in(file, USERS)
    assert file.stat().st_mode & 0o777 == 0o600
    assert BrokerAccess.kept_in(file, USERS) == first
    assert len(set(first.passwords.values())) == len(USERS) + 1
    assert not any(password in repr(first) for password in first.passwords.values())
    file.chmod(0o644)
    BrokerAccess.kept_in(file, USERS)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("[]")
    with pytest.raises(CredentialsDamaged, match=r"credentials\.json"):
        BrokerAccess.kept_in(file, USERS)


async def answer(port: int, **login: str) -> bytes:
    """Return the server's answer to a client that sends a request at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(20):
        assert (await reader.readline()).startswith(b"INFO")
        writer.write(b"CONNECT " + json.dumps({"verbose": False, **login}).encode() + b"\r\nPING\r\n")
        said = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return said


async def test_nobody_gets_in_without_a_password_and_services_work_with_theirs(tmp_path: Path) -> None:
    access = BrokerAccess.kept_in(tmp_path / "credentials.json", USERS)
    async with EmbeddedServer(tmp_path / "nats", access=access) as server:
        port = int(server.url.rpartition(":")[2])
        for login in ({}, {"user": "gctd", "pass": "wrong"}, {"user": "nobody", "pass": access.passwords["gctd"]}):
            assert b"Authorization Violation" in await answer(port, **login)
        assert await answer(port, **{"user": "gctd", "pass": access.passwords["gctd"]}) == b"PONG\r\n"
        settings = TrackerSettings(nats_url=access.address(TRACKER.name, port))
        async with Connection.open(access.address(OPERATOR.name, port), name="operator") as operator:
            await reconcile.apply(operator, declarations(settings))
        async with open_broker(settings, name="gctd") as broker:
            stored = await broker.blobs.put(b"text")
            assert await broker.blobs.get(stored.digest) == b"text"
        denials: list[str] = []

        async def note(error: Exception) -> None:
            denials.append(str(error))

        client = await nats.connect(settings.nats_url, error_cb=note)
        with pytest.raises(nats.errors.TimeoutError):
            await client.request("$JS.API.STREAM.DELETE.GCTD", b"", timeout=0.5)
        assert "permissions violation" in denials[0].lower()
        await client.close()
    written = [path for path in (tmp_path / "nats").rglob("*") if path.is_file() and path.name != "nats-server.conf"]
    passwords = [password.encode() for password in access.passwords.values()]
    assert not any(password in path.read_bytes() for path in written for password in passwords)
    assert json.loads((tmp_path / "credentials.json").read_text()) == access.passwords
    assert (tmp_path / "nats" / "nats-server.conf").stat().st_mode & 0o777 == 0o600
