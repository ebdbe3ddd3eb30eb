"""nats-server takes a command and does not answer: the error tells clients with and without a key how to proceed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import aiohttp
import pytest

from tests.support.pantry.system import pantry_system
from tests.support.programs.processes import stand_still
from tests.support.tracker.go_repo import make
from tests.support.tracker.system import tracker_system

pytestmark = pytest.mark.real

LONGER_THAN_THE_SERVER = aiohttp.ClientTimeout(total=60)
"""The server answers after 15 s, when the client of other tests gives up."""
WITHOUT_A_KEY = "without one, look"
"""The advice for clients without a key: each text has it, because a server in front of this one may drop the key."""


def advises_both(text: str) -> bool:
    """Whether a text promises safety only to a client with a key."""
    return "with an idempotency key" in text.lower() and WITHOUT_A_KEY in text.lower() and "is safe" not in text


async def test_a_client_of_the_pantry_without_a_key_is_told_to_look_first(tmp_path: Path) -> None:
    async with pantry_system(tmp_path) as system:
        await system.one.create()
        await stand_still(system.nats.pid)
        try:
            answer = await system.one.move("in", 1)
        finally:
            os.kill(system.nats.pid, signal.SIGCONT)
        assert answer.status == 503, answer
        assert advises_both(answer.body["error"]), answer.body


async def test_a_client_of_the_tracker_without_a_key_is_told_to_look_first(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        await system.start_worker(1)
        url = make(tmp_path / "source", kind="single").url
        await system.register(url)
        await system.post("/api/repo-config", {"url": url, "test_args": "-short"})  # decided without a read from now on
        await stand_still(system.nats.pid)
        try:
            body = {"url": url, "test_args": "-v"}
            status, answer = await system.status("/api/repo-config", "POST", json=body, timeout=LONGER_THAN_THE_SERVER)
        finally:
            os.kill(system.nats.pid, signal.SIGCONT)
        assert status == 503, answer
        assert advises_both(answer["message"]), answer
