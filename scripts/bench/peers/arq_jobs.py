"""No-op jobs through arq on Redis: python arq_jobs.py REDIS_PORT COUNT CONCURRENCY.

One worker process, results kept. Prints one JSON object: seconds to enqueue, and until every result is there, as the client
sees it; processor seconds of worker and client in that time.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.jobs import Job
from spent import spent

IN_FLIGHT = 50


async def nothing(context: dict[str, Any], number: int) -> int:
    """The job."""
    del context
    return number


class WorkerSettings:
    """The settings for `python -m arq`."""

    functions = [nothing]  # noqa: RUF012 - as its documentation has it
    redis_settings = RedisSettings(port=int(os.environ.get("PEER_PORT", "6379")))
    max_jobs = int(os.environ.get("PEER_CONCURRENCY", "10"))
    poll_delay = 0.05


async def main(port: int, count: int, worker: int) -> dict[str, Any]:
    """Send the jobs, wait for their results."""
    pool = await create_pool(RedisSettings(port=port))
    first = await pool.enqueue_job("nothing", 0)
    assert first is not None
    await first.result(timeout=60, poll_delay=0.05)
    places = asyncio.Semaphore(IN_FLIGHT)

    async def send(number: int) -> Job:
        async with places:
            job = await pool.enqueue_job("nothing", number)
        assert job is not None
        return job

    before, began = (spent(worker), time.process_time()), time.perf_counter()
    sent = await asyncio.gather(*(send(number) for number in range(count)))
    enqueued = time.perf_counter()
    for number, job in enumerate(sent):  # one after the other: a client that asks for all of them holds up the worker
        assert await job.result(timeout=300, poll_delay=0.05) == number
    ended = time.perf_counter()
    cpu = {"worker": spent(worker) - before[0], "client": time.process_time() - before[1]}
    await pool.aclose()
    return {"enqueued": enqueued - began, "total": ended - began, "cpu": cpu}


if __name__ == "__main__":
    environment = {**os.environ, "PEER_PORT": sys.argv[1], "PEER_CONCURRENCY": sys.argv[3]}
    command = [sys.executable, "-m", "arq", "arq_jobs.WorkerSettings"]
    with subprocess.Popen(command, env=environment, cwd=Path(__file__).parent, stderr=subprocess.DEVNULL) as worker:
        try:
            print(json.dumps(asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), worker.pid))))
        finally:
            worker.terminate()
