"""Example answers about tasks and their attempts."""

from __future__ import annotations

TASK = {
    "id": "task-1795186554976648438",
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "ref": "main",
    "status": "completed",
    "engine": "native",
    "attempt": 1,
    "max_attempts": 3,
    "created_at": "2026-11-20T14:55:54.976933Z",
    "updated_at": "2026-11-20T14:57:32.325566Z",
    "seen": False,
    "hidden": False,
    "worker": "worker-1",
    "stage": "",
    "reason": "",
    "analysis_id": "5f96c0f1da0d10873a959c573bb8deeb",
}
QUEUED = {name: value for name, value in TASK.items() if name != "analysis_id"} | {
    "status": "queued",
    "attempt": 0,
    "worker": "",
    "updated_at": "2026-11-20T14:55:54.976933Z",
}
ATTEMPT = {
    "attempt": 1,
    "worker": "worker-1",
    "started_at": "2026-11-20T14:55:55.032904Z",
    "ended_at": "2026-11-20T14:57:32.325566Z",
    "outcome": "completed",
    "reason": "",
    "stages": [
        {"stage": "clone", "started_at": "2026-11-20T14:55:55.045337Z", "duration_ms": 1011},
        {"stage": "modules", "started_at": "2026-11-20T14:55:56.056711Z", "duration_ms": 2842},
        {"stage": "test", "started_at": "2026-11-20T14:55:58.898265Z", "duration_ms": 92081},
        {"stage": "analyse", "started_at": "2026-11-20T14:57:30.979100Z", "duration_ms": 1079},
        {"stage": "store", "started_at": "2026-11-20T14:57:32.057995Z", "duration_ms": 268},
    ],
    "log": None,
}
