"""`pantry up`: the ledger alone with its own nats-server, which is restarted and ends with it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import attrs
import pytest

from eventlog.embedded.child import DataDirectoryInUse, DataLock
from eventlog.embedded.nats import BINARY_VARIABLE, find_binary
from tests.support.pantry.system import FLOUR
from tests.support.programs import warm
from tests.support.programs.small_disk import small_disk
from tests.support.programs.supervised import Supervised, alive, supervised
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


def started_in(directory: Path) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the command of a ledger with its data in a directory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GCTD_", "NATS_", "PANTRY_"))}
    environment["XDG_STATE_HOME"] = str(directory / "state")
    return environment, [sys.executable, "-m", "pantry", "up", "--port", "0", "--data-dir", str(directory / "data")]


@contextmanager
def ledger(directory: Path, console: Path, **settings: str) -> Iterator[Supervised]:
    """Run a ledger with its data in a directory, and its output in a file."""
    environment, command = started_in(directory)
    with supervised(command, console, environment | settings) as running:
        yield running


async def test_the_ledger_alone_keeps_its_stock_over_a_kill_of_its_broker_and_a_restart(tmp_path: Path) -> None:
    environment, command = started_in(tmp_path)

    def pantry(*arguments: str, program: str = "pantry") -> str:
        done = warm.run(program, *arguments, environment=environment, directory=Path("/"), seconds=30)
        return done.stdout if not done.returncode else f"failed: {done.stderr}"

    with supervised(command, tmp_path / "first.txt", environment) as running:
        await wait_until(lambda: "Ctrl-C stops" in running.said, 60)
        assert len(running.descendants()) == 1, "one process and its nats-server"
        assert "{" not in running.said, "no log lines on a good start"
        assert "Flour" in pantry("product", "add", "4006381333931", "--name", "Flour", "--unit", "kg")
        assert pantry("token", "list").startswith("ID\t")
        assert pantry("migrate", "version").startswith("Current migration version: ")
        verified = pantry("verify", "--json", program="projections")
        assert json.loads(verified)["equal"], "the only service that runs"
        killed = running.find("nats-server")
        killed.kill()
        await wait_until(lambda: killed.pid not in [child.pid for child in running.descendants().values()], 10)
        await wait_until(running.descendants, 10)
        await wait_until(lambda: not pantry("movement", "add", "--ean", "4006381333931", "--in", "2").startswith("failed"), 30)
        children = list(running.descendants().values())
        assert await running.end(signal.SIGINT) == 0
        assert alive(children) == []
    assert "pantry token create NAME" in pantry(*command[3:], "--host", "0.0.0.0")
    with supervised([*command, "--host", "127.0.0.2"], tmp_path / "second.txt", environment) as running:
        await wait_until(lambda: "Ctrl-C stops" in running.said, 60)
        assert "page   http://127.0.0.2:" in running.said
        assert "Flour" in pantry("product", "list")
        assert pantry("token", "create", "phone").startswith("pantry_")
        assert pantry("pair", "--address", "https://pantry.home") == "https://pantry.home/\n"
        assert await running.end(signal.SIGTERM) == 0


@attrs.frozen
class Switch:
    """A nats-server that can be taken away, and given back."""

    program: Path

    @classmethod
    def made(cls, directory: Path) -> Switch:
        made = cls(directory / "nats-server")
        made.give()
        return made

    @property
    def setting(self) -> dict[str, str]:
        return {BINARY_VARIABLE: str(self.program)}

    def give(self) -> None:
        self.program.symlink_to(find_binary())

    def take(self) -> None:
        self.program.unlink()


async def test_a_broker_that_cannot_be_started_is_reported_and_started_as_soon_as_it_can_be(tmp_path: Path) -> None:
    switch = Switch.made(tmp_path)
    with ledger(tmp_path, tmp_path / "console.txt", **switch.setting) as running:
        await wait_until(lambda: "Ctrl-C stops" in running.said, 60)
        switch.take()
        running.find("nats-server").kill()
        await wait_until(lambda: f"{switch.program} is not a program that can be run" in running.said, 30)
        switch.give()
        await wait_until(lambda: "nats-server runs again" in running.said, 60)
        assert "nats-server ended by SIGKILL, starting it again in 0.5 s" in running.said
        assert await running.end(signal.SIGTERM) == 0


async def test_a_ledger_whose_broker_is_away_outlasts_another_one_on_its_data_directory(tmp_path: Path) -> None:
    """The other one is refused, since the database is in use, and may have had the directory of the broker before."""
    switch = Switch.made(tmp_path)
    with ledger(tmp_path, tmp_path / "first.txt", **switch.setting) as first:
        await wait_until(lambda: "Ctrl-C stops" in first.said, 60)
        switch.take()
        first.find("nats-server").kill()
        lock = await taken_between_two_tries(tmp_path / "data/nats")
        await wait_until(lambda: f"is in use by process {os.getpid()}" in first.said, 60)
        switch.give()
        lock.release()
        await wait_until(lambda: "nats-server runs again" in first.said, 60)
        assert await first.end(signal.SIGTERM) == 0


async def taken_between_two_tries(directory: Path) -> DataLock:
    """The lock on the data directory of a broker, which its owner has only while it tries to start the broker."""

    async def take() -> DataLock | None:
        with suppress(DataDirectoryInUse):
            return await DataLock.take(directory)
        return None

    lock = await wait_until(take, 30)
    assert lock is not None
    lock.name(os.getpid())
    return lock


async def test_a_disk_that_was_full_and_has_room_again_lets_the_ledger_store_again(tmp_path: Path) -> None:
    small = {"PANTRY_EVENT_STORE_MAX_BYTES": "16MiB"}
    with small_disk(tmp_path / "disk") as disk, ledger(tmp_path / "disk", tmp_path / "console.txt", **small) as running:
        await wait_until(lambda: "Ctrl-C stops" in running.said, 60)
        [url] = re.findall(r"page   (\S+)", running.said)
        async with aiohttp.ClientSession(url) as http:

            async def booked() -> bool:
                async with http.post("/api/v1/movements", json={"product_ean13": FLOUR, "type": "in", "quantity": 1}) as answer:
                    return answer.status == 201

            async def ready() -> bool:
                async with http.get("/readyz") as answer:
                    return answer.status == 200

            async with http.post(f"/api/v1/products/{FLOUR}", json={"name": "Flour", "unit": "kg"}) as answer:
                assert answer.status == 201
            assert await booked()
            disk.fill(running.find("nats-server"))

            async def refused() -> bool:
                return not await booked() and not await ready()

            await wait_until(refused, 30)
            disk.free()
            await wait_until(ready, 30)
            assert await booked()
        assert "nats-server has closed a stream after a write error" in running.said
        assert await running.end(signal.SIGTERM) == 0
