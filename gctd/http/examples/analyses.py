"""Example answers about analyses of a project."""

from __future__ import annotations

SUMMARY = {"average": 2.074, "combined": 4.148, "exceeded": 0, "total_funcs": 2}
STATES = {"measured": SUMMARY, "states": {"measured": 2}}
ANALYSIS = {
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
} | {"summary": SUMMARY, **STATES}
WHOLE_ANALYSIS = ANALYSIS | {
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
    | {"summary": SUMMARY},
    "warnings": [],
}
