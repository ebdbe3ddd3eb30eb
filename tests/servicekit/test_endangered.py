"""A stream that can lose what is acknowledged: writes are closed within 5 s, with the true reason, until that is mended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio

from eventlog.admin.backup import back_up
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from examples.bank.service import BANK
from servicekit import ServiceSettings
from tests.support.pace import within
from tests.support.programs import warm
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

HOUR = 3600 * 10**9


@attrs.define
class Endangered:
    """A bank, and an operator who changes its stream."""

    http: aiohttp.ClientSession
    operator: Connection
    database: str

    async def deposit(self, account: str = "anna") -> tuple[int, str]:
        async with self.http.post(f"/api/accounts/{account}/deposits", json={"cents": 1}) as answer:
            return answer.status, await answer.text()

    async def readiness(self) -> Mapping[str, str]:
        async with self.http.get("/readyz") as answer:
            return dict(await answer.json())

    async def config(self) -> dict[str, Any]:
        return dict((await call(self.operator, "STREAM.INFO.BANK"))["config"])

    async def update(self, config: Mapping[str, Any], **changes: Any) -> None:
        await call(self.operator, "STREAM.UPDATE.BANK", {**config, **changes})

    async def closed(self, *parts: str, without: str = "(ok)") -> None:
        """Wait until the probe reports that writes are closed, for reasons with these parts; reads are not concerned."""

        async def said() -> bool:
            found = await self.readiness()
            return found["reads"] == "ok" and all(part in found["writes"] for part in parts) and without not in found["writes"]

        await wait_until(said, timeout=5, every=0.1)

    async def ready(self) -> None:
        async def is_ready() -> bool:
            return (await self.readiness()).get("status") == "ok"

        await wait_until(is_ready, timeout=20, every=0.1)

    async def command(self, *words: object) -> str:
        """Run a command of `projections` that succeeds, and return its output."""
        environment = {**os.environ, "NATS_URL": f"nats://{self.operator.options.addresses}", "BANK_DATABASE_URL": self.database}
        command = [*map(str, words), "--model", "examples.bank.service:MODEL"]
        done = await asyncio.to_thread(warm.run, "projections", *command, environment=environment, seconds=120)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@asynccontextmanager
async def endangered(nats_url: str, directory: Path) -> AsyncIterator[Endangered]:
    database = f"sqlite:{directory / 'bank.db'}"
    settings = ServiceSettings(port=0, nats_url=nats_url, database_url=database)
    async with (
        BANK.listening(settings) as address,
        aiohttp.ClientSession(address.url) as http,
        Connection.open(nats_url, name="operator") as operator,
    ):
        yield Endangered(http, operator, database)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bank(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endangered]:
    directory = tmp_path_factory.mktemp("bank")
    async with EmbeddedServer(directory / "nats") as server, endangered(server.url, directory) as made:
        yield made


@pytest.mark.parametrize(
    "changes",
    [
        {"max_msgs": 1000, "discard": "old"},
        {"max_age": HOUR, "duplicate_window": 120 * 10**9},
        {"max_msgs_per_subject": 1000},
        {"discard": "old"},
        {"duplicate_window": 10**9},
        {"no_ack": True},
        {"subject_transform": {"src": "bank.account.*", "dest": "other.{{wildcard(1)}}"}},
        {"sources": [{"name": "ELSEWHERE"}]},
        {"subjects": ["elsewhere.>"]},
        {"allow_direct": False},
    ],
    ids="-".join,
)
async def test_a_setting_that_can_lose_events_closes_writes_until_it_is_set_back(
    bank: Endangered, changes: dict[str, Any]
) -> None:
    """No event was lost: the service continues without a restore and without a restart."""
    await bank.ready()
    assert (await bank.deposit())[0] == 200
    before = await bank.config()
    await bank.update(before, **changes)
    found = await bank.config()
    changed = [name for name in changes if found.get(name) != before.get(name)]
    assert changed
    try:
        await bank.closed(*(f"{name} is " for name in changed), "is not as declared", "`projections streams apply`")
        status, text = await bank.deposit()
        assert status == 503
        if "allow_direct" not in changes:  # without it the aggregate cannot be read either
            assert "nothing was stored" in text
            assert all(f"{name} is " in text for name in changed)
    finally:
        await bank.update(before)
    await bank.ready()
    assert (await bank.deposit())[0] == 200


@pytest.mark.parametrize(
    "changes", [{"max_bytes": 1024**2}, {"description": "of an operator"}, {"subjects": ["bank.account.*", "bank.vault.*"]}]
)
async def test_a_setting_that_can_lose_nothing_closes_nothing(bank: Endangered, changes: dict[str, Any]) -> None:
    """A newer program may have added subjects."""
    await bank.ready()
    assert (await bank.deposit())[0] == 200  # without an append it is not known whether writes succeed
    before = await bank.config()
    await bank.update(before, **changes)
    try:
        await asyncio.sleep(0.6)  # the next probe looks again
        assert (await bank.readiness()) == {"status": "ok", "reads": "ok", "writes": "ok"}
        assert (await bank.deposit())[0] == 200
    finally:
        await bank.update(before)


async def test_writes_are_refused_within_five_seconds_without_a_probe_and_lost_events_are_named_and_restored(
    nats_url: str, tmp_path: Path
) -> None:
    """The running service takes writes again when the repair has ended."""
    async with endangered(nats_url, tmp_path) as bank:
        for number in range(100):
            assert (await bank.deposit(f"a{number % 4}"))[0] == 200
        (tmp_path / "backup").mkdir()
        await back_up(bank.operator, "BANK", tmp_path / "backup", verify=True)
        before = await bank.config()
        with within(5):
            await bank.update(before, max_msgs=60, discard="old")
            answers: list[tuple[int, str]] = []
            while not answers or "max_msgs is 60, declared -1" not in answers[-1][1]:
                answers.append(await bank.deposit(f"a{len(answers) % 4}"))
                await asyncio.sleep(0.1)
        stored = 100 + sum(status == 200 for status, _ in answers)
        await bank.update(before)
        gone = f"{stored - 60} records of the stream BANK are gone, which begins at sequence {stored - 59}"
        await bank.closed(gone, "`projections repair` restores them from a backup", without="is not as declared")
        status, text = await bank.deposit("a0")
        assert status == 503
        assert gone in text

        report = await bank.command("repair", "--apply", "--from-backup", tmp_path / "backup", "--keep", tmp_path / "kept")
        assert f"BANK is repaired up to sequence {stored}" in report
        await bank.ready()
        assert [status for status, _ in [await bank.deposit(account) for account in ("a0", "new")]] == [200, 200]
        async with bank.http.get("/api/accounts") as answer:
            assert sum(account["cents"] for account in await answer.json()) == stored + 2
        assert "equal" in await bank.command("verify")
