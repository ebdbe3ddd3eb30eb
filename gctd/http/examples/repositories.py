"""Example answers about repositories: registration, settings, updates."""

from __future__ import annotations

REPO = {
    "ID": "398ef2a691efa94fe9e86414598dc882",
    "URL": "https://github.com/example/sums",
    "Status": "ready",
    "StatusReason": "",
    "CommitSHA": "f0f651bfacd0c04c8893fa7b47656957db88ceee",
    "DefaultRef": "main",
    "RegisteredAt": "2026-11-20T14:55:52.210439Z",
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
_SETTINGS = {
    "ref": "main",
    "test_args": "",
    "crap_args": [],
    "submodules": False,
    "timeout": "30m",
    "git_timeout": "10m",
    "go_flags": "",
    "coverpkg": False,
    "store_source": "always",
}
CONFIG = {
    "url": "https://github.com/example/sums",
    "subdir": "",
    "stored": dict.fromkeys(_SETTINGS),
    "effective": _SETTINGS,
    "origin": dict.fromkeys(_SETTINGS, "default"),
}
UPDATE = {
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
