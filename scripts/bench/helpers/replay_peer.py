"""The events of a tracker's log, with their rows, for the Python library `eventsourcing` (see `replay.py`)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import msgspec

from bench.helpers.peer_python import installed
from eventlog import Commit
from eventlog.jetstream.log import JetStreamLog
from gctd.readmodel import MODEL
from projections.migrations import migrations_of
from projections.model import Put, Table

PROGRAM = Path(__file__).parents[1] / "peers" / "eventsourcing_replay.py"


@attrs.frozen
class Peer:
    """The library in a private environment, and the file of events for it."""

    python: Path
    events: Path

    def measure(self, database: str) -> dict[str, Any]:
        """Store the events, which is not measured, and replay them. `database`: the database of Postgres, else a file is made."""
        with tempfile.TemporaryDirectory(prefix="peer-") as directory:
            settings = _postgres(database) if database else _sqlite(Path(directory) / "peer.db")
            command = [self.python, PROGRAM, self.events]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **settings})
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result


async def prepared(log: JetStreamLog, store: str, events: int, directory: Path) -> Peer:
    """The library installed below a directory, and the first events of the log written down for it."""
    python = directory / "bench_eventsourcing" / "bin" / "python"
    if not python.exists():
        await asyncio.to_thread(installed, directory, "bench_eventsourcing")
    lines = [_header(store)]
    async for commits in log.follow(after=0, until=events):
        lines += map(_line, commits)
    file = directory / "peer-events"
    file.write_bytes(b"\n".join(lines))
    return Peer(python, file)


def _line(commit: Commit) -> bytes:
    rows = [
        (change.table.name, change.row)
        for projection in MODEL.projections
        for change in projection.apply(commit)
        if isinstance(change, Put)
    ]
    body = msgspec.json.decode(commit.data)
    return msgspec.json.encode((commit.aggregate.id, commit.body.events[0].type, body, rows))


def _header(store: str) -> bytes:
    tables = [
        statement for migration in migrations_of(MODEL, store) for statement in migration.up.split(";") if statement.strip()
    ]
    places = "?" if store == "sqlite" else "%s"
    puts = {table.name: _put(table, places) for projection in MODEL.projections for table in projection.tables}
    return msgspec.json.encode({"tables": tables, "puts": puts})


def _put(table: Table, place: str) -> str:
    values = ", ".join([place] * len(table.names))
    others = ", ".join(f"{name} = excluded.{name}" for name in table.names if name not in table.key)
    return (
        f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES ({values}) "  # noqa: S608 - constants
        f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {others}"
    )


def _sqlite(file: Path) -> Mapping[str, str]:
    return {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(file)}


def _postgres(database: str) -> Mapping[str, str]:
    address = urlsplit(database)
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": address.path.lstrip("/"),
        "POSTGRES_HOST": parse_qs(address.query)["host"][0],
        "POSTGRES_USER": address.username or "",
        "POSTGRES_PASSWORD": "none is asked for",
    }
