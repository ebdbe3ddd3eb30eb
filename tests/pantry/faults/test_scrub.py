"""A service finds damage in its log by itself, and reports it while it serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.log.damage import flip
from tests.support.pantry.system import FLOUR, MILK, pantry_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


async def test_a_flipped_bit_in_the_middle_of_the_log_is_named_by_probe_figures_and_api(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        server = system.one
        await server.create(FLOUR)
        await server.create(MILK)
        for quantity in (1, 2, 3):
            await server.moved("in", quantity, reason=f"delivery {quantity}.")
        assert await server.stock() == 6
        await server.kill()
        await system.nats.stop()
        flip(system.nats.data_dir, "PANTRY", b"delivery 2.")
        await system.nats.start()
        await server.start()

        async def noted() -> str:
            body = (await server.ask("GET", "/readyz")).body
            return str(body.get("note", "")) if isinstance(body, dict) else ""

        await wait_until(noted, timeout=60, every=0.2)
        note = await noted()
        assert "log: 1 records of PANTRY are damaged, the first: sequence 6: the record cannot be read" in note
        assert "Do not delete the tables" in note
        metrics = (await server.ask("GET", "/metrics")).body
        assert "log_damaged_records 1.0" in metrics
        scrub = (await server.get("/projections"))["scrub"]
        assert (scrub["damaged"], scrub["found"]) == (1, ["sequence 6: the record cannot be read"])
        assert await server.stock() == 6, "the tables still have it"
