"""The embedded server: starts, restarts, refuses and dies as it promises."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from errno import ENOSPC
from pathlib import Path
from unittest.mock import Mock

import nats.errors
import psutil
import pytest

from eventlog.embedded.child import DataDirectoryInUse
from eventlog.embedded.nats import BlockCopies, EmbeddedServer, ServerFailed, free_port
from tests.support.log.damage import flip
from tests.support.log.nats import plain_client
from tests.support.waiting import wait_until

OWNER = """
import asyncio, sys
from pathlib import Path
from eventlog.embedded.nats import EmbeddedServer

async def main():
    async with EmbeddedServer(Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def start_owner(directory: Path) -> tuple[asyncio.subprocess.Process, int]:
    """Another Python process that owns a server; and the pid of that server."""
    owner = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        OWNER,
        str(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": "."},
    )
    assert owner.stdout is not None
    line = await asyncio.wait_for(owner.stdout.readline(), 20)
    while not line.strip().isdigit():  # log lines come first
        line = await asyncio.wait_for(owner.stdout.readline(), 20)
    return owner, int(line)


def exists(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_started_means_that_jetstream_answers_with_one_mebibyte_messages(nats_server: EmbeddedServer) -> None:
    async with plain_client(nats_server.url) as client:
        await client.jetstream().add_stream(name="S", subjects=["s"])
        stored = await client.jetstream().publish("s", b"x" * (1024**2 - 1024))
        assert stored.seq == 1
        with pytest.raises(nats.errors.MaxPayloadError):
            await client.publish("s", b"x" * (1024**2 + 1))


async def test_every_message_is_synced_before_it_is_acknowledged_by_configuration(nats_server: EmbeddedServer) -> None:
    """Only strace or a power cut shows whether the server syncs. The configuration shows that it has to."""
    _, _, configuration = psutil.Process(nats_server.pid).cmdline()
    jetstream = json.loads(await asyncio.to_thread(Path(configuration).read_text))["jetstream"]
    assert jetstream["sync_interval"] == "always"
    assert jetstream["max_file_store"] == 8 * 1024**3


@pytest.mark.real
async def test_the_storage_limit_is_never_above_what_the_disk_has(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path, max_file_store=1 << 60) as server, plain_client(server.url) as client:
        with pytest.raises(nats.js.errors.APIError, match="insufficient storage"):
            await client.jetstream().add_stream(name="S", subjects=["s"], max_bytes=1 << 59)


@pytest.mark.real
async def test_it_listens_on_loopback_only_in_a_session_of_its_own(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server:
        process = psutil.Process(server.pid)
        addresses = {c.laddr.ip for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
        assert addresses == {"127.0.0.1"}
        assert os.getsid(server.pid) == server.pid
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.monitoring_url.rpartition(":")[2]))
        writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b'"status":"ok"' in await reader.read()
        writer.close()


@pytest.mark.parametrize("hard", [False, True])
async def test_a_restart_keeps_port_and_data(nats_server: EmbeddedServer, hard: bool) -> None:
    async with plain_client(nats_server.url) as client:
        await client.jetstream().add_stream(name="S", subjects=["s"])
        await client.jetstream().publish("s", b"kept")
    before = nats_server.url, nats_server.pid
    if hard:
        await nats_server.kill()
        with pytest.raises(ServerFailed):
            _ = nats_server.pid
    await nats_server.restart()
    assert nats_server.url == before[0]
    assert nats_server.pid != before[1]
    async with plain_client(nats_server.url) as client:
        assert (await client.jetstream().get_msg("S", 1)).data == b"kept"


@pytest.mark.skipif(sys.platform != "linux", reason="the range is where Linux has it")
async def test_its_port_is_none_that_connections_are_given(nats_server: EmbeddedServer) -> None:
    """Or somebody's connection might have it when the server is started again."""
    text = await asyncio.to_thread(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text)
    lowest = int(text.split()[0])
    assert int(nats_server.url.rpartition(":")[2]) < lowest


@pytest.mark.real
async def test_a_free_port_that_another_program_takes_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for another one; a port that was asked for is the caller's."""
    with socket.create_server(("127.0.0.1", free_port())) as faster:
        taken, other = faster.getsockname()[1], free_port()
        monkeypatch.setattr(
            "eventlog.embedded.nats.free_port", iter([taken, free_port(), other, *(free_port() for _ in range(4))]).__next__
        )
        async with EmbeddedServer(tmp_path / "any") as server:
            assert server.url == f"nats://127.0.0.1:{other}"
        with pytest.raises(ServerFailed, match="address already in use"):
            await EmbeddedServer(tmp_path / "that", port=taken).start()


@pytest.mark.real
async def test_a_second_start_on_the_data_directory_names_the_process_that_has_it(tmp_path: Path) -> None:
    owner, _ = await start_owner(tmp_path)
    try:
        with pytest.raises(DataDirectoryInUse, match=f"process {owner.pid}") as refused:
            await EmbeddedServer(tmp_path).start()
        assert refused.value.pid == owner.pid
    finally:
        owner.terminate()
        await owner.wait()


@pytest.mark.real
async def test_a_stopped_server_releases_its_data_directory(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path):
        pass
    async with EmbeddedServer(tmp_path):
        pass


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_it_dies_with_its_parent_which_can_start_again_at_once(tmp_path: Path, how: signal.Signals) -> None:
    owner, server = await start_owner(tmp_path)
    owner.send_signal(how)
    await owner.wait()
    async with EmbeddedServer(tmp_path) as again:  # waits for the orphan to be gone
        assert not exists(server)
        assert again.pid != server


async def test_the_end_of_the_server_is_noticed(nats_server: EmbeddedServer) -> None:
    waiting = asyncio.create_task(nats_server.wait())
    os.kill(nats_server.pid, signal.SIGKILL)
    assert await asyncio.wait_for(waiting, 30) == -signal.SIGKILL


@pytest.mark.real
async def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = EmbeddedServer(tmp_path, port=taken.getsockname()[1])
        with pytest.raises(ServerFailed, match="address already in use"):
            await server.start()
    async with EmbeddedServer(tmp_path):
        """And the data directory is free again."""


@pytest.mark.real
async def test_a_start_that_hangs_is_given_up_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\necho waiting for nothing\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("EVENTLOG_NATS_SERVER", str(program))
    server = EmbeddedServer(tmp_path / "data", start_timeout=2)
    with pytest.raises(ServerFailed, match=r"(?s)within 2 s.*waiting for nothing"):
        await server.start()
    with pytest.raises(ServerFailed):
        _ = server.pid
    await wait_until(lambda: not [p for p in psutil.Process().children(recursive=True) if p.name() == "sleep"])


@pytest.mark.real
async def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTLOG_NATS_SERVER", str(tmp_path / "no-such-server"))
    with pytest.raises(ServerFailed, match="no-such-server"):
        await EmbeddedServer(tmp_path / "data").start()


@pytest.mark.real
async def test_a_data_directory_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerFailed, match="file"):
        await EmbeddedServer(tmp_path / "file" / "data").start()


@pytest.mark.real
async def test_after_a_kill_the_last_blocks_are_copied_aside_before_the_server_can_cut_them(tmp_path: Path) -> None:
    """A flipped bit and a kill: the server cuts the stream at the start; the copy has the records behind it."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        async with plain_client(server.url) as client:
            await client.jetstream().add_stream(name="S", subjects=["s.*"])
            for number in range(1, 31):
                await client.jetstream().publish(f"s.{number}", b"record %d." % number)
        await server.kill()
        flip(tmp_path / "nats", "S", b"record 8.")
        await server.start()
        async with plain_client(server.url) as client:
            left = (await client.jetstream().stream_info("S")).state.messages
        assert left < 30, "the server cuts"
        [copy] = (tmp_path / "nats" / "before-recovery").glob("*/S/*.blk")
        content = copy.read_bytes()
        assert all(b"record %d." % number in content for number in range(9, 31))
        for _ in range(3):
            await server.kill()
            await server.start()
        assert len(list((tmp_path / "nats" / "before-recovery").iterdir())) == 2
        assert copy.read_bytes() == content, "starts without new records push no copy out"


def test_a_copy_for_which_there_is_no_room_takes_the_place_of_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = tmp_path / "jetstream/$G/streams/S/msgs"
    blocks.mkdir(parents=True)
    box = BlockCopies(tmp_path)
    for content in (b"first", b"second", b"third"):
        (blocks / "1.blk").write_bytes(content)
        box.before_start()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", Mock(side_effect=OSError(ENOSPC, os.strerror(ENOSPC))))
        for content in (b"fourth", b"fifth"):
            (blocks / "1.blk").write_bytes(content)
            with pytest.raises(OSError, match="No space"):
                box.before_start()
    kept = sorted((tmp_path / "before-recovery").glob("*/S/1.blk"))
    assert [file.read_bytes() for file in kept] == [b"second", b"third"]
    box.before_start()
    kept = sorted((tmp_path / "before-recovery").glob("*/S/1.blk"))
    assert [file.read_bytes() for file in kept] == [b"third", b"fifth"]


@pytest.mark.real
async def test_after_a_stop_in_good_order_nothing_is_copied(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / "nats") as server:
        async with plain_client(server.url) as client:
            await client.jetstream().add_stream(name="S", subjects=["s"])
            await client.jetstream().publish("s", b"one")
        await server.restart()
    async with EmbeddedServer(tmp_path / "nats"):
        assert not (tmp_path / "nats" / "before-recovery").exists()
