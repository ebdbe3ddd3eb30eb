"""A cluster under load while each kind of its parts is killed once: no loss, no repetition, and every part continues."""

from __future__ import annotations

import signal

import pytest

from tests.support.cluster.kills import KINDS, kill
from tests.support.cluster.load import loaded
from tests.support.cluster.system import cluster_directory, clustered

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.mark.timeout(600)
async def test_kill_9_of_any_part_loses_nothing_and_applies_nothing_twice() -> None:
    """Clients ask the other server of a kind, with the same key. `scripts/bench/cluster/cluster.py` measures their wait."""
    with cluster_directory() as directory:
        async with clustered(directory, "--allow-local", GCTD_PRESENCE_TTL="3s") as cluster:
            async with loaded(cluster, directory, repositories=30, pause=0.05) as load:
                kills = [await kill(load, kind) for kind in KINDS]
                await load.end()
                await load.until_looked_at()
                assert await load.audit() == []
                assert len(load.accepted) > 100
                assert len(load.registered) >= len(kills)
            assert await cluster.running.end(signal.SIGINT, within=90) == 130
