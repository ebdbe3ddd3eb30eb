"""`projections repair --apply` on the log of a running service: it waits and continues, and nothing that it stored is lost."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from eventlog import Commands, Context
from eventlog.admin.backup import back_up
from eventlog.jetstream.connection import Connection
from pantry.domain.gtin import own_code
from pantry.domain.ledger import PRODUCT, RecordMovement
from pantry.domain.product import MovementType
from tests.support.log.damage import flip
from tests.support.pantry.system import FLOUR, Answer, PantrySystem, log_of, pantry_system
from tests.support.programs import warm
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

BEFORE = 1500
"""Movements before the first repair: nats-server needs about a second to restore them."""
TRUE_CAUSES = ("being repaired", "being restored from a copy", "is missing", "stream not found", "not connected", "no connection")


class Writers:
    """Clients that book movements and create products until they are stopped; each request is repeated with its key."""

    def __init__(self, system: PantrySystem) -> None:
        self.server = system.one
        self.booked = self.created = 0
        self.refusals: list[Answer] = []
        self._stopping = False

    async def done(self, path: str, document: object) -> None:
        key = {"Idempotency-Key": uuid4().hex}
        while (answer := await self.server.post(path, document, **key)).status != 201:
            self.refusals.append(answer)
            assert answer.status == 503, answer
            await asyncio.sleep(0.05)

    async def book(self) -> None:
        while not self._stopping:
            await self.done("/movements", {"product_ean13": FLOUR, "type": "in", "quantity": 1})
            self.booked += 1

    async def create(self, codes: range) -> None:
        """Only the incarnation of the stream protects a new aggregate: its guard is 0."""
        for code in map(own_code, codes):
            if self._stopping:
                return
            await self.done(f"/products/{code}", {"name": f"product {code}", "unit": "kg"})
            self.created += 1

    async def beside(self, work: asyncio.Task[str], codes: range) -> str:
        """Write during the work, and until both have written after it."""
        self._stopping = False
        writing = [asyncio.create_task(self.book()), asyncio.create_task(self.create(codes))]
        try:
            done = await work
            booked, created = self.booked, self.created
            await wait_until(lambda: any(task.done() for task in writing) or (self.booked > booked and self.created > created))
        finally:
            self._stopping = True
            await asyncio.gather(*writing)
        return done


def delivery(number: int) -> RecordMovement:
    """A movement of one kilogram."""
    return RecordMovement(
        id=f"m-{number}", ean13=FLOUR, type=MovementType.IN, quantity=1000, at=datetime.now(UTC), reason=f"delivery {number}."
    )


async def repaired(system: PantrySystem, directory: Path, number: int) -> str:
    """Repair the log from the backup, and return the report of the command."""
    words = (
        "repair",
        "--model",
        "pantry",
        "--from-backup",
        directory / "backup",
        "--apply",
        "--keep",
        directory / f"kept-{number}",
    )
    environment = {**os.environ, "NATS_URL": system.nats.url, **system.one.environment}
    done = await asyncio.to_thread(warm.run, "projections", *map(str, words), environment=environment, seconds=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_service_waits_for_the_repair_and_continues(tmp_path: Path) -> None:
    """Three times. The reasons of refused writes are true, and the tables equal the log."""
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create(FLOUR)
        async with log_of(system.nats) as log:
            movements = [(delivery(number), Context()) for number in range(BEFORE)]
            await Commands(log).execute_in_order(PRODUCT, FLOUR, movements)
        (tmp_path / "backup").mkdir()
        async with Connection.open(system.nats.url, name="operator") as connection:
            await back_up(connection, "PANTRY", tmp_path / "backup", verify=True)
        writers = Writers(system)
        for number in range(3):
            await system.nats.stop()
            flip(system.nats.data_dir, "PANTRY", b"delivery %d." % (10 + number))
            await system.nats.start()
            work = asyncio.create_task(repaired(system, tmp_path, number))
            report = await writers.beside(work, range(1000 * number, 1000 * number + 1000))
            assert "restored from backup" in report
            await server.ready(timeout=20)
        reasons = {str(refusal.body["detail"]) for refusal in writers.refusals}
        assert [reason for reason in reasons if not any(cause in reason for cause in TRUE_CAUSES)] == []
        assert await server.stock() == BEFORE + writers.booked
        assert len(await server.get("/products")) == 1 + writers.created
        await server.kill()
        assert await server.difference_from_a_fold() is None
