"""The program go-crap 0.5.1: the oracle of the engine `native-compat`, on hosts that have the program."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROGRAM = shutil.which("go-crap")


def scan(module: Path, profile: bytes, flags: Sequence[str] = ()) -> Any:
    """Return the report of the program on a module, which it finds by the place of the profile."""
    assert PROGRAM is not None
    staged = module / ".go-crap-cover.out"
    staged.write_bytes(profile)
    try:
        with TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            command = [PROGRAM, "scan", "--coverage-profile", str(staged), "--format", "json", "-o", str(report), *flags]
            subprocess.run(command, cwd=module, check=True, capture_output=True)
            return json.loads(report.read_bytes())
    finally:
        staged.unlink()


def numbers(report: Any) -> list[tuple[Any, ...]]:
    """Return the functions of a report in the form of go-crap, sorted by their places."""
    keys = ("file", "line", "package", "function", "receiver", "cyclomatic", "coverage", "crap")
    return sorted((tuple(entry.get(key) for key in keys) for entry in report["entries"] or ()), key=str)
