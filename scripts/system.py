"""What the system on this machine consists of, as data: services, addresses, settings. A further service is added here."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
from options import Options
from service import Ready, Service

from gctd.settings import load
from projections.postgres.server import PostgresServer

_GCTD, _PANTRY, _GRAPHQL, _NATS = 0, 1, 2, 9
"""Where a service's port stands above the port base."""

_DRAIN = 40.0
"""Seconds for a worker to finish or hand back its job: somewhat more than it takes by default (`drain_timeout`)."""


DATABASES = ("gctd", "pantry")
"""The databases of the services, where they are not files."""


class PortInUse(Exception):
    """A port that was asked for is taken."""


@attrs.frozen(kw_only=True)
class System:
    """All that the supervisor needs to know.

    The services of one stage start together, when those of the stage before are ready; before all nats-server, and Postgres
    where there is one, with the databases `DATABASES`.
    `addresses` are shown and written to the ready file, `environment` is what a command needs to reach this system, `welcome`
    tells the user what to do with it.
    """

    directory: Path
    nats_port: int
    postgres: PostgresServer | None
    stages: tuple[tuple[Service, ...], ...]
    addresses: Mapping[str, str]
    environment: Mapping[str, str]
    welcome: str


def plan(options: Options) -> System:
    """The system that the options ask for. Raises PortInUse, SettingsError."""
    offsets = (_GCTD, _PANTRY, _GRAPHQL, _NATS)
    port, pantry_port, graphql_port, nats_port = (_port(options.port_base, offset) for offset in offsets)
    gctd, pantry, graphql = (f"http://127.0.0.1:{each}" for each in (port, pantry_port, graphql_port))
    nats = f"nats://127.0.0.1:{nats_port}"
    token = load().settings.auth_token
    postgres = PostgresServer(options.data_dir / "postgres") if options.postgres else None
    settings = {
        "GCTD_NATS_URL": nats,
        "GCTD_DATABASE_URL": _database(options, postgres, "gctd"),
        "GCTD_CACHE_DIRECTORY": str(options.data_dir / "cache"),
        "GCTD_URL": gctd,
        "PANTRY_NATS_URL": nats,
        "PANTRY_DATABASE_URL": _database(options, postgres, "pantry"),
        "PANTRY_URL": pantry,
    }
    inside = {
        **settings,
        "GCTD_HOST": "127.0.0.1",
        "GCTD_PORT": str(port),
        "GCTD_LOG_FORMAT": "json",  # which the console understands
        "PANTRY_SERVER_HOST": "127.0.0.1",
        "PANTRY_SERVER_PORT": str(pantry_port),
        "PANTRY_LOG_FORMAT": "json",
        "GRAPHQL_HOST": "127.0.0.1",
        "GRAPHQL_PORT": str(graphql_port),
        "GRAPHQL_LOG_FORMAT": "json",
        "GRAPHQL_TRACKER_DATABASE": settings["GCTD_DATABASE_URL"],
        "GRAPHQL_PANTRY_DATABASE": settings["PANTRY_DATABASE_URL"],
        "GRAPHQL_NATS_URL": nats,
        **({"GCTD_ALLOW_LOCAL": "true"} if options.allow_local else {}),
    }
    # -P: a folder named gctd in the working directory is not the program.
    python = (sys.executable, "-P", "-m")
    program = (*python, "gctd")
    ledger = Service(name="pantry", command=(*python, "pantry", "serve"), environment=inside, ready=Ready(url=f"{pantry}/readyz"))
    gateway = Service(
        name="graphql", command=(*python, "graphql_fn", "serve"), environment=inside, ready=Ready(url=f"{graphql}/readyz")
    )
    serve = Service(name="serve", command=(*program, "serve"), environment=inside, ready=Ready(url=f"{gctd}/readyz"))
    announced = Ready(
        url=f"{gctd}/api/workers", headers={"Authorization": f"Bearer {token}"} if token else {}, is_right=_lists_the_worker
    )
    workers = tuple(
        Service(
            name=f"worker-{number}",
            command=(*program, "worker"),
            environment={**inside, "GCTD_WORKER_ID": f"worker-{number}"},
            ready=announced,
            patience=_DRAIN,
        )
        for number in range(1, options.workers + 1)
    )
    return System(
        directory=options.data_dir,
        nats_port=nats_port,
        postgres=postgres,
        stages=((serve, ledger), (gateway, *workers)),  # the gateway looks at the tables of the others
        addresses={"gctd": gctd, "pantry": pantry, "graphql": graphql, "nats": nats},
        environment=settings,
        welcome=f"open {gctd} in a browser, or, in another terminal: GCTD_URL={gctd} {_program()} repo add URL (Ctrl-C ends all)",
    )


def _database(options: Options, postgres: PostgresServer | None, name: str) -> str:
    """The address of a service's database."""
    return f"sqlite:{options.data_dir / f'{name}.db'}" if postgres is None else postgres.url(name)


def _program() -> str:
    """The command line of the tracker, as it can be typed here."""
    program = Path(sys.executable).with_name("gctd")
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)


def _lists_the_worker(body: bytes, pid: int) -> bool:
    return any(worker["pid"] == pid and worker["status"] != "gone" for worker in json.loads(body))


def _port(base: int, offset: int) -> int:
    """The port at an offset from the base, which has to be free, or any free one where the base is 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", base + offset if base else 0))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise PortInUse(f"port {base + offset}: {reason}; choose others with --port-base (0: free ports)") from error
        port: int = probe.getsockname()[1]
        return port
