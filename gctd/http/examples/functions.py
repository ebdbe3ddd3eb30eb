"""Example answers about one function and its history."""

from __future__ import annotations

FUNCTION = {
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
FOUND_FUNCTIONS = {
    "functions": [
        {
            "id": "5f96c0f1da0d10873a959c573bb8deeb",
            "repo_url": "https://github.com/example/sums",
            "project": ".",
            "key": "Add",
            "function": "Add",
            "file": "sums.go",
            "line": 3,
            "crap": 2.148,
            "state": "measured",
        }
    ],
    "searched": 1,
    "left_out": 0,
}
FUNCTION_HISTORY = {
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
