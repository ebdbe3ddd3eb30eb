"""Example answers for operators: a worker, a record of the log, the state of an aggregate."""

from __future__ import annotations

WORKER = {
    "id": "worker-1",
    "host": "build-1",
    "pid": 19656,
    "cpu": 0.225,
    "memory": 67104768,
    "status": "idle",
    "reason": "",
    "tasks": [],
    "concurrency": 1,
    "fast_concurrency": 1,
    "version": "0.1.0",
    "engines": {"native": "1.0.0", "native-compat": "1.0.0"},
    "go_version": "go1.26.8",
    "fetches_go": True,
    "platform": "linux/amd64",
    "sandbox": "namespaces",
    "started_at": "2026-11-20T14:55:52.559794Z",
    "heard_at": "2026-11-20T15:02:11.870312Z",
}
RECORD = {
    "position": "21",
    "sequence": 21,
    "aggregate": "gctd.task.task-1795186554976648438",
    "type": "TaskStageReached",
    "version": 1,
    "at": "2026-11-20T14:57:32.057995Z",
    "data": {"attempt": 1, "stage": "store", "at": "2026-11-20T14:57:32.057995Z"},
    "commit": "7b0e6dfb7f4f4e3f9d9c8e5ac2c2a6b1",
    "correlation": None,
    "causation": None,
    "actor": "worker:worker-1",
    "problem": None,
}
STATE = {
    "aggregate": "gctd.task.task-1795186554976648438",
    "sequence": 21,
    "at": "2026-11-20T14:57:32.057995Z",
    "version": 4,
    "state": {"id": "task-1795186554976648438", "status": "running", "stage": "store"},
    "events": [RECORD],
}
