"""The system as a cluster, as `gctd up --cluster` starts it: three nats-servers, Postgres, two of each service."""

from __future__ import annotations

import signal

import psutil
import pytest

from eventlog.jetstream.api import call
from tests.support.cluster.system import SERVERS, cluster_directory, clustered
from tests.support.programs.supervised import alive
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.real, pytest.mark.long]

PARTS = {*SERVERS, "postgres", "serve-1", "serve-2", "pantry-1", "pantry-2", "worker-1", "worker-2"}
STREAMS = {"GCTD", "PANTRY", "PANTRY_KEYS", "crap_jobs_scan", "crap_jobs_lanes", "gctd_logs", "KV_gctd-workers", "OBJ_gctd-blobs"}


@pytest.mark.timeout(240)
async def test_a_cluster_starts_and_kill_9_of_it_leaves_nothing_behind() -> None:
    """All parts are there, and the ready file is all that a client needs; every stream is on three servers."""
    with cluster_directory() as directory:
        async with clustered(directory) as cluster:
            assert set(cluster.ready) == {"gctd", "pantry", "nats", "pids", "env"}
            assert {name: len(cluster.ready[name]) for name in ("gctd", "pantry", "nats")} == {"gctd": 2, "pantry": 2, "nats": 3}
            assert set(cluster.pids) == PARTS
            async with cluster.connected() as connection:
                streams = [stream["config"] for stream in (await call(connection, "STREAM.LIST"))["streams"]]
            assert {stream["name"] for stream in streams} >= STREAMS
            assert {stream["num_replicas"] for stream in streams} == {3}
            everything = [psutil.Process(pid) for pid in cluster.pids.values()]
            assert await cluster.running.end(signal.SIGKILL) == -9
            await wait_until(lambda: not alive(everything), 30)
