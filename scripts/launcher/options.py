"""The arguments of `scripts/up` and `scripts/cluster`. Standard library only: they are read before anything is installed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_EPILOG = """
The console shows warnings, errors, and services that start and end; everything is in DATA_DIR/logs. Ctrl-C ends all in good
order: workers first (each finishes or hands back its job), nats-server last; a second Ctrl-C ends all at once.

examples:
{examples}

exit codes: 0 help, 1 a part did not start or the set-up failed, 2 wrong arguments, 5 data directory or port in use,
6 no nats-server or no Postgres, 130 Ctrl-C, 143 SIGTERM, 129 terminal closed
"""
_UP_EXAMPLES = """\
  scripts/up --demo
  scripts/up --port-base 0 --ready-file /tmp/ready.json --data-dir /tmp/tracker
  scripts/up --allow-local --workers 2 --verbose
  scripts/up --postgres --data-dir /tmp/tracker"""
_CLUSTER_EXAMPLES = """\
  scripts/cluster --demo
  scripts/cluster --port-base 0 --ready-file /tmp/ready.json --data-dir /tmp/cluster"""
_CLUSTER = """\
Start the system as a cluster on this machine: three nats-servers that hold each stream together, a Postgres, two of
each service on it. The second of each kind listens ten ports above the first; there is nothing in front of them: a
client that gets no answer from one asks the other. The ready file has all addresses, and the process ids of the moment."""


class Options(argparse.Namespace):
    """The options; see the help text."""

    cluster: bool
    data_dir: Path
    port_base: int
    workers: int
    postgres: bool
    allow_local: bool
    demo: bool
    ready_file: Path | None
    verbose: bool


def parse(program: str, arguments: Sequence[str]) -> Options:
    """The options of `up` or `cluster`; ends the program with status 2 if they are wrong."""
    cluster = program == "cluster"
    parser = argparse.ArgumentParser(
        prog=f"scripts/{program}",
        description=_CLUSTER if cluster else "Start the whole system on this machine: embedded NATS, the control plane, workers.",
        epilog=_EPILOG.format(examples=_CLUSTER_EXAMPLES if cluster else _UP_EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    place = Path(".data") / "cluster" if cluster else Path(".data")
    parser.add_argument(
        "--data-dir", type=Path, default=ROOT / place, metavar="DIR", help=f"where everything is kept (default: {place} here)"
    )
    parser.add_argument(
        "--port-base", type=_port, default=8080, metavar="PORT", help="first port on 127.0.0.1 (default: 8080; 0: free ports)"
    )
    workers = 2 if cluster else 1
    parser.add_argument("--workers", type=_count, default=workers, metavar="N", help=f"how many workers (default: {workers})")
    if not cluster:
        parser.add_argument(
            "--postgres", action="store_true", help="keep the tables in a Postgres of this system's own instead of SQLite files"
        )
    parser.add_argument("--allow-local", action="store_true", help="accept repositories on the local disk")
    parser.add_argument(
        "--demo", action="store_true", help="make a small Go repository, register and analyse it (implies --allow-local)"
    )
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="write addresses, process ids and environment as JSON when all is ready; kept up to date while it runs",
    )
    parser.add_argument("--verbose", action="store_true", help="show every line that the services log")
    options = parser.parse_args(arguments, namespace=Options(cluster=cluster, postgres=cluster))
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
