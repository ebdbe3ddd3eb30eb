"""Example answers for the API's description, by the names of their handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servicekit.status_route import EXAMPLE as PROJECTIONS

_TASK = {
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
_QUEUED = {name: value for name, value in _TASK.items() if name != "analysis_id"} | {
    "status": "queued",
    "attempt": 0,
    "worker": "",
    "updated_at": "2026-11-20T14:55:54.976933Z",
}
_SUMMARY = {"average": 2.074, "combined": 4.148, "exceeded": 0, "total_funcs": 2}
_STATES = {"measured": _SUMMARY, "states": {"measured": 2}}
_ANALYSIS = {
    "id": "5f96c0f1da0d10873a959c573bb8deeb",
    "repo_id": "398ef2a691efa94fe9e86414598dc882",
    "project": ".",
    "task_id": "task-1795186652410075861",
    "repo_info": {
        "url": "https://github.com/example/sums",
        "ref": "main",
        "commit_sha": "a861998724c19fc67fe14930d405374994faf266",
        "metadata": {"stars": 0, "forks": 0, "language": "Go", "license": ""},
    },
    "engine": "native",
    "engine_version": "1.0.0",
    "crap_version": "v0.5.1",
    "go_version": "go1.26.8",
    "platform": "linux/amd64",
    "coverage_source": "tests",
    "flags": ["-vet=off", "GOWORK=off"],
    "profile_digest": "664f602ca0a58d27a8242c13938146f5a947510b216b29c1935708175ccde3b0",
    "profile_path": "coverage/398ef2a691efa94fe9e86414598dc882/./a861998724c19fc67fe14930d405374994faf266.out",
    "sandbox": "bubblewrap",
    "uncovered": [],
    "analyzed_at": "2026-11-20T14:57:37.219958Z",
    "duration_ms": 4765,
    "rescored_from": None,
} | {"summary": _SUMMARY, **_STATES}
_WHOLE_ANALYSIS = _ANALYSIS | {
    "source": "https://github.com/example/sums/blob/a861998724c19fc67fe14930d405374994faf266/{path}#L{line}",
    "entries": [
        {
            "coverage": 66.667,
            "crap": 2.148,
            "cyclomatic": 2,
            "differs": None,
            "end_line": 8,
            "file": "sums.go",
            "function": "Add",
            "line": 3,
            "name": "Add",
            "package": "sums",
            "receiver": "",
            "stmt_coverage": 66.667,
            "state": "measured",
            "reason": "",
            "key": "Add",
        }
    ],
    "raw_output": {
        "version": "1.1.0",
        "entries": [
            {
                "baseline_crap": 0,
                "coverage": 66.667,
                "delta": 2.148,
                "file": "sums.go",
                "function": "Add",
                "package": "sums",
                "crap": 2.148,
                "cyclomatic": 2,
                "effective_crap": 2.148,
                "line": 3,
                "mutation_score": 0,
                "coverage_untrusted": False,
            }
        ],
    }
    | {"summary": _SUMMARY},
    "warnings": [],
}
_FUNCTION = {
    "id": "5f96c0f1da0d10873a959c573bb8deeb",
    "task_id": "task-1795186554976648438",
    "repo_id": "398ef2a691efa94fe9e86414598dc882",
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "ref": "main",
    "commit_sha": "a861998724c19fc67fe14930d405374994faf266",
    "analyzed_at": "2026-11-20T14:57:37.219958Z",
    "key": "Add",
    "others": [],
    "file": "sums.go",
    "package": "sums",
    "function": "Add",
    "line": 3,
    "end_line": 8,
    "cyclomatic": 2,
    "coverage": 66.667,
    "stmt_coverage": 66.667,
    "crap": 2.148,
    "threshold": 30.0,
    "state": "measured",
    "reason": "",
    "link": "https://github.com/example/sums/blob/a861998724c19fc67fe14930d405374994faf266/sums.go#L3",
    "license": "MIT",
    "source": {
        "first": 3,
        "lines": ["func Add(a, b int) int {", "\tif a < 0 {", "\t\treturn 0", "\t}", "\treturn a + b", "}"],
        "marks": "++- + ",
        "total": 8,
    },
    "source_reason": "",
    "blocks": [
        {
            "start_line": start[0],
            "start_column": start[1],
            "end_line": end[0],
            "end_column": end[1],
            "statements": 1,
            "covered": covered,
            "runs": None,
            "parent": parent,
        }
        for start, end, covered, parent in [
            ((3, 24), (4, 11), True, None),
            ((4, 11), (6, 3), False, 0),
            ((7, 2), (7, 14), True, 0),
        ]
    ],
    "blocks_reason": "",
    "branches": [{"line": 4, "column": 2, "token": "if"}],
    "advice": {"kind": "none", "needed": 0.0, "blocks": 0, "steps": [], "crap": 2.148, "more": 0, "parts": None},
    "advice_reason": "",
}
_FUNCTION_HISTORY = {
    "points": [
        {
            "task_id": "task-1795186554976648438",
            "commit_sha": "a861998724c19fc67fe14930d405374994faf266",
            "analyzed_at": "2026-11-20T14:57:37.219958Z",
            "key": "Add",
            "file": "sums.go",
            "line": 3,
            "function": "Add",
            "crap": 2.148,
            "cyclomatic": 2,
            "coverage": 66.667,
            "state": "measured",
            "changes": ["added"],
        }
    ],
    "cut": False,
    "last_change": {
        "kind": "commit",
        "added": True,
        "before": "f0f651bfacd0c04c8893fa7b47656957db88ceee",
        "after": "a861998724c19fc67fe14930d405374994faf266",
        "commit": {
            "author": "Ada Example",
            "at": "2026-11-20T14:50:11Z",
            "subject": "Add sums",
            "parents": ["f0f651bfacd0c04c8893fa7b47656957db88ceee"],
        },
    },
}
_ATTEMPT = {
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
_REPO = {
    "ID": "398ef2a691efa94fe9e86414598dc882",
    "URL": "https://github.com/example/sums",
    "Status": "ready",
    "StatusReason": "",
    "CommitSHA": "f0f651bfacd0c04c8893fa7b47656957db88ceee",
    "DefaultRef": "main",
    "ProfiledAt": "2026-11-20T14:55:54.928120Z",
    "Profile": {
        "projects": [
            {
                "name": ".",
                "module_path": "example.com/sums",
                "go_version": "1.21",
                "toolchain": "",
                "in_workspace": False,
                "packages": 1,
                "has_tests": True,
                "problem": None,
            }
        ]
    },
}
_NEW = {
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
} | {"summary": _SUMMARY, **_STATES}
_OLD = _NEW | {
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
_DIFF = {
    "id": "5f96c0f1da0d10873a959c573bb8deeb",
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "from": _OLD,
    "to": _NEW,
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
            "after": {"file": "sums.go", "line": 10, "crap": 2.0, "cyclomatic": 1, "coverage": 0.0, **_MEASURED},
            **_KEPT,
        },
        {
            "status": "worse",
            "function": "Add",
            "package": "sums",
            "file": "sums.go",
            "line": 3,
            "delta": 1.148,
            "before": {"file": "sums.go", "line": 3, "crap": 1.0, "cyclomatic": 1, "coverage": 100.0, **_MEASURED},
            "after": {"file": "sums.go", "line": 3, "crap": 2.148, "cyclomatic": 2, "coverage": 66.667, **_MEASURED},
            **_KEPT,
        },
    ],
    "kept": [
        {
            "kept": ["moved"],
            "from": {"file": "add.go", "line": 3, "function": "Add"},
            "to": {"file": "sums.go", "line": 3, "function": "Add"},
            "similarity": None,
        }
    ],
}
_GATE = {
    "result": "failed",
    "passed": False,
    "reason": "",
    "verdict": "0f3c9a5e7d21b846a1c0d9e8f7b6a594",
    "base": {"kind": "merge base", "commit_sha": "f0f651bfacd0c04c8893fa7b47656957db88ceee", "task_id": None},
    "lost": 0,
    "unmeasured": [],
    "id": "5f96c0f1da0d10873a959c573bb8deeb",
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "from": _OLD,
    "to": _NEW,
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
            "before": {"file": "sums.go", "line": 3, "crap": 1.0, "cyclomatic": 1, "coverage": 100.0, **_MEASURED},
            "after": {"file": "sums.go", "line": 3, "crap": 2.148, "cyclomatic": 2, "coverage": 66.667, **_MEASURED},
        }
    ],
}
_CONFIG = {
    "url": "https://github.com/example/sums",
    "subdir": "",
    "stored": {
        "ref": None,
        "test_args": None,
        "crap_args": None,
        "submodules": None,
        "timeout": None,
        "git_timeout": None,
        "go_flags": None,
        "coverpkg": None,
        "store_source": None,
    },
    "effective": {
        "ref": "main",
        "test_args": "",
        "crap_args": [],
        "submodules": False,
        "timeout": "30m",
        "git_timeout": "10m",
        "go_flags": "",
        "coverpkg": False,
        "store_source": "always",
    },
    "origin": {
        "ref": "default",
        "test_args": "default",
        "crap_args": "default",
        "submodules": "default",
        "timeout": "default",
        "git_timeout": "default",
        "go_flags": "default",
        "coverpkg": "default",
        "store_source": "default",
    },
}
_WORKER = {
    "id": "worker-1",
    "host": "build-1",
    "pid": 19656,
    "cpu": 0.225,
    "memory": 67104768,
    "status": "idle",
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
_UPDATE = {
    "repo_url": "https://github.com/example/sums",
    "project": ".",
    "ref": "main",
    "recorded_sha": "a861998724c19fc67fe14930d405374994faf266",
    "remote_sha": "a861998724c19fc67fe14930d405374994faf266",
    "moved": False,
    "scheduled": False,
    "task_id": None,
    "note": None,
    "error": None,
}

_RECORD = {
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
_STATE = {
    "aggregate": "gctd.task.task-1795186554976648438",
    "sequence": 21,
    "at": "2026-11-20T14:57:32.057995Z",
    "version": 4,
    "state": {"id": "task-1795186554976648438", "status": "running", "stage": "store"},
    "events": [_RECORD],
}

EXAMPLES: Mapping[str, Any] = {
    "list_tasks": [_TASK],
    "schedule_first": _QUEUED,
    "schedule": [_QUEUED],
    "get_task": _TASK,
    "retry_task": _QUEUED,
    "task_result": _WHOLE_ANALYSIS,
    "list_attempts": [_ATTEMPT],
    "register": _REPO,
    "repo_status": _REPO,
    "list_repos": [_REPO],
    "list_analyses": [_ANALYSIS],
    "get_analysis": _WHOLE_ANALYSIS,
    "check_updates": [_UPDATE],
    "rescore": [_QUEUED],
    "upload_coverage": _QUEUED,
    "project_history": [_NEW | {"break": []}, _OLD | {"break": []}],
    "project_diff": _DIFF,
    "one_function": _FUNCTION,
    "function_history": _FUNCTION_HISTORY,
    "judge_analysis": _GATE,
    "ask_for_verdict": _GATE,
    "export_analysis": _WHOLE_ANALYSIS,
    "get_repo_config": _CONFIG,
    "set_repo_config": _CONFIG,
    "list_workers": [_WORKER],
    "take_github_delivery": {"id": "5f0c1f2d9a8b7c6d5e4f3a2b1c0d9e8f", "note": ""},
    "take_gitlab_delivery": {"id": None, "note": "nothing follows from Pipeline Hook"},
    "search_log": {"from": 1, "to": 21, "end": 21, "events": [_RECORD]},
    "state_at": _STATE,
    "show_projections": PROJECTIONS,
}
"""Each keeps to the schema of its answer: a test holds that."""
