"""Example answers that compare two analyses: history, difference, gate."""

from __future__ import annotations

from typing import Any

from gctd.http.examples.analyses import STATES, SUMMARY

NEW = {
    "task_id": "task-1795186652410075861",
    "commit_sha": "a861998724c19fc67fe14930d405374994faf266",
    "ref": "main",
    "engine": "native",
    "engine_version": "1.0.0",
    "crap_version": "v0.5.1",
    "go_version": "go1.26.8",
    "flags": ["-vet=off", "GOWORK=off"],
    "rescored_from": None,
    "sandbox": "bubblewrap",
    "analyzed_at": "2026-11-20T14:57:37.219958Z",
    "duration_ms": 4765,
} | {"summary": SUMMARY, **STATES}
OLD = NEW | {
    "task_id": "task-1795186554976648438",
    "commit_sha": "f0f651bfacd0c04c8893fa7b47656957db88ceee",
    "summary": {"average": 1.0, "combined": 1.0, "exceeded": 0, "total_funcs": 1},
    "measured": {"average": 1.0, "combined": 1.0, "exceeded": 0, "total_funcs": 1},
    "states": {"measured": 1},
    "analyzed_at": "2026-11-20T14:57:32.120702Z",
    "duration_ms": 97075,
}
_MEASURED = {"state": "measured", "reason": ""}
_KEPT: dict[str, Any] = {"kept": [], "similarity": None, "body_changed": True}
DIFF = {
    "id": "5f96c0f1da0d10873a959c573bb8deeb",
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "from": OLD,
    "to": NEW,
    "break": [],
    "threshold": 30.0,
    "partial": False,
    "counts": {"new": 1, "fixed": 0, "worse": 1, "better": 0, "gone": 0, "unmeasured": 0, "measured": 0, "unchanged": 0},
    "functions": [
        {
            "status": "new",
            "function": "Sub",
            "package": "sums",
            "file": "sums.go",
            "line": 10,
            "delta": 2.0,
            "before": None,
            "after": {"key": "Sub", "file": "sums.go", "line": 10, "crap": 2.0, "cyclomatic": 1, "coverage": 0.0, **_MEASURED},
            **_KEPT,
        },
        {
            "status": "worse",
            "function": "Add",
            "package": "sums",
            "file": "sums.go",
            "line": 3,
            "delta": 1.1,
            "before": {"key": "Add", "file": "sums.go", "line": 3, "crap": 1.0, "cyclomatic": 1, "coverage": 100.0, **_MEASURED},
            "after": {"key": "Add", "file": "sums.go", "line": 3, "crap": 2.1, "cyclomatic": 2, "coverage": 66.7, **_MEASURED},
            **_KEPT,
        },
    ],
    "kept": [
        {
            "kept": ["moved"],
            "from": {"key": "Add", "file": "add.go", "line": 3, "function": "Add"},
            "to": {"key": "Add", "file": "sums.go", "line": 3, "function": "Add"},
            "similarity": None,
        }
    ],
}
GATE = {
    "result": "failed",
    "passed": False,
    "reason": "",
    "verdict": "0f3c9a5e7d21b846a1c0d9e8f7b6a594",
    "base": {"kind": "merge base", "commit_sha": "f0f651bfacd0c04c8893fa7b47656957db88ceee", "task_id": None},
    "no_longer_risky": 0,
    "fixed": [],
    "rising": 0,
    "worsened": [],
    "lacking": 0,
    "unmeasured": [],
    "leaving": 0,
    "excluded": [],
    "id": "5f96c0f1da0d10873a959c573bb8deeb",
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "from": OLD,
    "to": NEW,
    "break": [],
    "threshold": 30.0,
    "partial": False,
    "checks": [
        {"name": "max_new", "passed": True, "limit": 0.0, "value": 0.0, "text": "new functions over 30"},
        {"name": "max_worse", "passed": False, "limit": 0.0, "value": 1.0, "text": "functions that are worse"},
    ],
    "offending": 1,
    "functions": [
        {
            "checks": ["max_worse"],
            "function": "Add",
            "package": "sums",
            "before": {"key": "Add", "file": "sums.go", "line": 3, "crap": 1.0, "cyclomatic": 1, "coverage": 100.0, **_MEASURED},
            "after": {"key": "Add", "file": "sums.go", "line": 3, "crap": 2.1, "cyclomatic": 2, "coverage": 66.7, **_MEASURED},
        }
    ],
}
