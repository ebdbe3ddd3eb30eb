"""No-op jobs through Celery on Redis: python celery_jobs.py REDIS_PORT COUNT CONCURRENCY.

One worker process with threads, jobs acknowledged when they are done, as ours are, results kept. Prints one JSON object: seconds
to enqueue, and until every result is there, as the client sees it; processor seconds of worker and client in that time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery
from spent import spent

REDIS = f"redis://127.0.0.1:{os.environ.get('PEER_PORT', '6379')}/0"

app = Celery("celery_jobs", broker=REDIS, backend=REDIS)
app.conf.update(task_acks_late=True, worker_hijack_root_logger=False)


@app.task(name="nothing")
def nothing(number: int) -> int:
    """The job."""
    return number


def main(count: int, worker: int) -> dict[str, Any]:
    """Send the jobs, wait for their results."""
    nothing.delay(0).get(timeout=60)
    before, began = (spent(worker), time.process_time()), time.perf_counter()
    sent = [nothing.delay(number) for number in range(count)]
    enqueued = time.perf_counter()
    for number, result in enumerate(sent):
        assert result.get(timeout=300) == number
    ended = time.perf_counter()
    cpu = {"worker": spent(worker) - before[0], "client": time.process_time() - before[1]}
    return {"enqueued": enqueued - began, "total": ended - began, "cpu": cpu}


if __name__ == "__main__":
    environment = {**os.environ, "PEER_PORT": sys.argv[1]}
    if "PEER_PORT" not in os.environ:
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)
    worker = ["worker", "--pool", "threads", "--concurrency", sys.argv[3], "--without-gossip", "--without-mingle"]
    command = [sys.executable, "-m", "celery", "--app", "celery_jobs", *worker]
    with subprocess.Popen(
        command, env=environment, cwd=Path(__file__).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            print(json.dumps(main(int(sys.argv[2]), running.pid)))
        finally:
            running.terminate()
