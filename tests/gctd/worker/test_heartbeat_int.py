"""A worker that is no longer heard takes no jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gctd.settings import Settings
from gctd.worker.main import work
from gctd.worker.usage import UsageMeter
from tests.support.tracker.fake_work import FakeWork


async def test_a_worker_ends_with_an_error_of_its_heartbeat(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def look(_: UsageMeter) -> tuple[float, int]:
        nonlocal looks
        looks += 1
        if looks > 2:
            raise RuntimeError("the processes of this machine cannot be listed")
        return 0.0, 0

    monkeypatch.setattr(UsageMeter, "look", look)
    settings = Settings(nats_url=nats_url, cache_directory=tmp_path, presence_ttl=1.0)
    with pytest.raises(RuntimeError, match="cannot be listed"):
        async with asyncio.timeout(60):
            await work(settings, instead=FakeWork(settings))
