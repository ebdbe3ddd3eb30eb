"""A stand-in for the program go-crap, for hosts that do not have it: its command line, its output, its exit codes.

Its numbers are from the native engine in compatibility mode, in the form of go-crap 0.5.1: the report in the file named by
`-o`, its log on standard output, `Error: ...` on standard error, exit codes 0 and 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from gctd.domain.options import parse_crap_args
from gctd.engines.engine import EngineInput
from gctd.engines.native import NativeEngine
from gctd.engines.report import raw_output

SCHEMA = "https://raw.githubusercontent.com/padiazg/go-crap/master/schemas/report-v1.json"


def install(directory: Path, script: str | None = None) -> Path:
    """Put a program called go-crap into a directory: the stand-in, which is this file, or a shell script; gives its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "go-crap"
    path.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}" if script is None else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def main() -> None:
    """The stand-in."""
    match sys.argv[1:]:
        case ["version", "-s"]:
            print("v0.5.1")
        case ["scan", "--coverage-profile", profile, "--format", "json", "-o", output, *flags]:
            scan(Path(profile), Path(output), flags)
        case _:
            sys.exit(f"Error: unknown command {sys.argv[1:]}")


def scan(profile: Path, output: Path, flags: list[str]) -> None:
    if not profile.exists():
        sys.exit(f"Error: coverage profile: stat {profile}: no such file or directory")
    module = next(directory for directory in profile.parents if (directory / "go.mod").exists())
    print('time=2026-01-01T00:00:00.000Z level=INFO msg="scan complete"')
    path = (module / "go.mod").read_text().split()[1]
    given = EngineInput(module_dir=module, repository=module, module_path=path, profile=profile, options=parse_crap_args(flags))
    raw = msgspec.to_builtins(raw_output(NativeEngine(compat=True).analyse(given)))
    output.write_text(json.dumps({"$schema": SCHEMA, **raw}))


if __name__ == "__main__":
    main()
