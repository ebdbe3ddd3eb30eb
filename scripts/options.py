"""The arguments of `scripts/up`. Standard library only: they are read before anything is installed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_EPILOG = """
The console shows warnings, errors, and what starts and ends; everything is in DATA_DIR/logs. Ctrl-C ends all in good
order: workers first (each finishes or hands back its job), nats-server last; a second Ctrl-C ends all at once.

examples:
  scripts/up --demo
  scripts/up --port-base 0 --ready-file /tmp/ready.json --data-dir /tmp/tracker
  scripts/up --allow-local --workers 2 --verbose
  scripts/up --postgres --data-dir /tmp/tracker

exit codes: 0 help, 1 a part did not start or the set-up failed, 2 wrong arguments, 5 data directory or port in use,
6 no nats-server or no Postgres, 130 Ctrl-C, 143 SIGTERM, 129 terminal closed
"""


class Options(argparse.Namespace):
    """What was asked for; see the help text."""

    data_dir: Path
    port_base: int
    workers: int
    postgres: bool
    allow_local: bool
    demo: bool
    ready_file: Path | None
    verbose: bool


def parse(arguments: Sequence[str]) -> Options:
    """The options; ends the program with status 2 where they are wrong."""
    parser = argparse.ArgumentParser(
        prog="scripts/up",
        description="Start the whole system on this machine: embedded NATS, the control plane, workers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data-dir", type=Path, default=ROOT / ".data", metavar="DIR", help="where everything is kept (default: .data here)"
    )
    parser.add_argument(
        "--port-base", type=_port, default=8080, metavar="PORT", help="first port on 127.0.0.1 (default: 8080; 0: free ports)"
    )
    parser.add_argument("--workers", type=_count, default=1, metavar="N", help="how many workers (default: 1)")
    parser.add_argument(
        "--postgres", action="store_true", help="keep the tables in a Postgres of this system's own instead of SQLite files"
    )
    parser.add_argument("--allow-local", action="store_true", help="accept repositories on the local disk")
    parser.add_argument(
        "--demo", action="store_true", help="make a small Go repository, register and analyse it (implies --allow-local)"
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="write addresses and environment as JSON when all is ready"
    )
    parser.add_argument("--verbose", action="store_true", help="show every line that the services log")
    options = parser.parse_args(arguments, namespace=Options())
    options.data_dir = options.data_dir.absolute()
    options.allow_local = options.allow_local or options.demo
    return options


def _port(text: str) -> int:
    port = int(text)
    if port and not 1024 <= port <= 65000:
        raise argparse.ArgumentTypeError("0, or from 1024 to 65000")
    return port


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= 64:
        raise argparse.ArgumentTypeError("from 0 to 64")
    return count
