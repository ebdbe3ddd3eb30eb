"""Another user of the same host: the embedded broker and the data directory tell it nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.embedded.nats import BrokerAccess, BrokerUser, EmbeddedServer
from eventlog.jetstream.connection import Connection
from terminalkit.service_commands import PRIVATE

pytestmark = pytest.mark.real

OTHER = 65_534
LOOK = """
import os, socket, sys
data, port = sys.argv[1], int(sys.argv[2])
seen = []
for top, folders, files in os.walk(data):
    seen += [os.path.join(top, name) for name in files]
for name in ("credentials.json", "gctd.db", "nats", "nats/nats-server.conf", "."):
    try:
        (os.listdir if os.path.isdir(os.path.join(data, name)) else open)(os.path.join(data, name))
        seen.append(name)
    except (PermissionError, FileNotFoundError):
        pass
with socket.create_connection(("127.0.0.1", port)) as link:
    link.settimeout(10)
    link.recv(4096)
    link.sendall(b'CONNECT {"verbose":true,"pedantic":false}\\r\\nSUB answer 1\\r\\n')
    link.sendall(b'PUB $JS.API.STREAM.NAMES answer 0\\r\\n\\r\\nPING\\r\\n')
    told = b""
    try:
        while chunk := link.recv(4096):
            told += chunk
    except (ConnectionError, TimeoutError):
        pass
print(repr((os.getuid(), seen, b"Authorization Violation" in told, b"streams" in told)))
"""


@pytest.fixture
def data() -> Iterator[Path]:
    """A data directory below one that every user may enter, so that its own mode is what counts."""
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)
        found = Path(above) / "data"
        found.mkdir(mode=0o700)
        yield found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_reads_no_stream_and_no_file_of_the_data_directory(data: Path) -> None:
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("there is no Python that every user may run")
    before = os.umask(PRIVATE)
    try:
        access = BrokerAccess.kept_in(data / "credentials.json", [BrokerUser(name="operator")])
        async with EmbeddedServer(data / "nats", access=access) as nats:
            port = nats.url.rpartition(":")[2]
            async with Connection.open(access.address("operator", int(port)), name="test") as connection:
                assert connection.connected, "the operator reads what is there"
            (data / "gctd.db").write_text("rows")
            assert open_to_others(data) == []
            out = await look(python, str(data), port)
            assert out == repr((OTHER, [], True, False))
            give_away(data, data / "gctd.db")
            out = await look(python, str(data), port)
            assert "gctd.db" in out, "the look finds what is there to be found"
            assert "'credentials.json'" not in out, "its own mode keeps it"
    finally:
        os.umask(before)


def open_to_others(directory: Path) -> list[Path]:
    """The files below a directory that another user may use in any way."""
    return [path for path in directory.rglob("*") if path.stat().st_mode & 0o077]


def give_away(*paths: Path) -> None:
    """Let every user read these."""
    for path in paths:
        path.chmod(0o755)


async def look(python: str, *arguments: str) -> str:
    """Return the report of another user."""
    process = await asyncio.create_subprocess_exec(
        *(python, "-I", "-c", LOOK, *arguments),
        user=OTHER,
        group=OTHER,
        extra_groups=[],
        cwd="/",
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return out.decode().strip()
