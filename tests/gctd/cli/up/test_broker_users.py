"""The broker of `gctd up` asks for a password, and each service may do what it needs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nats
import nats.errors
import pytest

from eventlog.admin import reconcile
from eventlog.admin.declarations import load_declarations
from eventlog.embedded.nats import BrokerAccess, CredentialsDamaged, EmbeddedServer
from eventlog.jetstream.connection import Connection
from gctd.broker.broker import open_broker
from gctd.cli.up.users import OPERATOR, PANTRY, TRACKER, USERS
from gctd.settings import Settings as TrackerSettings
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


@pytest.mark.real
async def test_nobody_gets_in_without_a_password_and_services_work_with_theirs(tmp_path: Path) -> None:
    access = BrokerAccess.kept_in(tmp_path / "credentials.json", USERS)
    async with EmbeddedServer(tmp_path / "nats", access=access) as server:
        port = int(server.url.rpartition(":")[2])
        for login in ({}, {"user": "gctd", "pass": "wrong"}, {"user": "nobody", "pass": access.passwords["gctd"]}):
            assert b"Authorization Violation" in await answer(port, **login)
        assert await answer(port, **{"user": "gctd", "pass": access.passwords["gctd"]}) == b"PONG\r\n"
        settings = TrackerSettings(nats_url=access.address(TRACKER.name, port))
        async with Connection.open(access.address(OPERATOR.name, port), name="operator") as operator:
            await reconcile.apply_declarations(operator, load_declarations())
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


INTRUDER = """
import encodings.idna, json, os, socket, sys
place, port = sys.argv[1:]
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
found = []
for path in [place, *json.load(sys.stdin)]:
    for attempt in (os.listdir, lambda name: open(name, "rb").read(1), lambda name: open(name, "r+b"), os.unlink):
        try:
            attempt(path)
        except OSError:
            continue
        found.append(path)
for login in ({}, {"user": "gctd"}, {"user": "operator", "pass": ""}):
    with socket.create_connection(("127.0.0.1", int(port)), 10) as broker:
        request = b"CONNECT " + json.dumps({"verbose": False, **login}).encode()
        broker.sendall(request + b"\\r\\nSUB x 1\\r\\nPUB $JS.API.STREAM.LIST x 0\\r\\n\\r\\nPING\\r\\n")
        said = b""
        while piece := broker.recv(65536):
            said += piece
        found += [said.decode()] if b"streams" in said or b"Authorization Violation" not in said else []
print("read nothing" if not found else found)
"""


@pytest.mark.real
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_another_user_of_the_host_reads_no_stream_and_no_file() -> None:
    """The data directory is in a directory that everybody can enter, and the umask is the usual one."""
    with tempfile.TemporaryDirectory() as public:
        os.chmod(public, 0o755)  # noqa: PTH101 - the mode of a text
        data = Path(public) / "data"
        access = BrokerAccess.kept_in(data / "credentials.json", USERS)
        async with EmbeddedServer(data / "nats", access=access) as server:
            port = server.url.rpartition(":")[2]
            async with Connection.open(access.address(OPERATOR.name, int(port)), name="operator") as operator:
                await reconcile.apply_declarations(operator, load_declarations())
            paths = [str(path) for path in data.rglob("*")]
            assert any("GCTD" in path for path in paths)
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-I", "-S", "-c", INTRUDER, str(data), port],
                input=json.dumps(paths),
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.stderr, done.stdout) == ("", "read nothing\n")
