"""The system on this machine, as data: services, addresses, settings. A further service is added here."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from eventlog.admin.declarations import Declarations
from eventlog.embedded.access import BrokerAccess
from eventlog.embedded.nats import EmbeddedServer, Membership
from eventlog.embedded.ports import free_port
from gctd.settings import SETTINGS
from gctd.wiring.broker import declarations as tracker_declarations
from launcher.options import Options
from launcher.service import Ready, Service
from launcher.users import OPERATOR, PANTRY, TRACKER, USERS
from pantry.serve import SERVICE as LEDGER
from pantry.settings import SETTINGS as LEDGER_SETTINGS
from projections.stores.postgres.server import PostgresServer

_GCTD, _PANTRY, _GRAPHQL, _MONITORING, _ROUTE, _NATS = 0, 1, 2, 7, 8, 9
"""Offset of the first of a kind above the port base; in a cluster each further one is `_APART` above the one before."""
_APART = 10

_SERVERS, _REPLICAS = 3, 2
"""How many nats-servers, and how many of each service, a cluster has."""

_DRAIN = 40.0
"""Seconds for a worker to finish or hand back its job: somewhat more than it takes by default (`drain_timeout`)."""


CREDENTIALS = "credentials.json"
"""The file in the data directory with the passwords of the broker."""

DATABASES = ("gctd", "pantry")
"""The databases of the services, if they are not files."""


class PortInUse(Exception):
    """A port that was asked for is taken."""


@attrs.frozen(kw_only=True)
class System:
    """The parameters of the supervisor.

    The services of one stage start together, when the services of the stage before are ready; before all the `brokers`, and
    Postgres if there is one, with the databases `DATABASES`.
    `addresses` are shown and written to the ready file, `environment` has the variables of commands for this system, `welcome`
    is the text with the next steps for the user. `declarations` are applied before the services start, through the address
    `operator`: the services may not create streams.
    """

    directory: Path
    brokers: tuple[EmbeddedServer, ...]
    postgres: PostgresServer | None
    stages: tuple[tuple[Service, ...], ...]
    addresses: Mapping[str, str | Sequence[str]]
    environment: Mapping[str, str]
    welcome: str
    operator: str | None = attrs.field(default=None, repr=False)
    declarations: tuple[Declarations, ...] = ()


@attrs.frozen
class _Ports:
    """The ports of each kind, one for each of its processes."""

    gctd: tuple[int, ...]
    pantry: tuple[int, ...]
    graphql: tuple[int, ...]
    nats: tuple[int, ...]
    routes: tuple[int, ...]
    monitoring: tuple[int, ...]


def plan(options: Options) -> System:
    """The system that the options ask for. Raises PortInUse, SettingsError."""
    ports = _ports(options)
    postgres = PostgresServer(options.data_dir / "postgres") if options.postgres else None
    nats = [_address(port, "nats") for port in ports.nats]
    access = BrokerAccess.kept_in(options.data_dir / CREDENTIALS, USERS)
    addresses_of = {user.name: ",".join(access.address(user.name, port) for port in ports.nats) for user in USERS}
    operator, tracker = addresses_of[OPERATOR.name], addresses_of[TRACKER.name]
    gctd, pantry, graphql = ([_address(port) for port in each] for each in (ports.gctd, ports.pantry, ports.graphql))
    monitoring = ",".join(_address(port) for port in ports.monitoring)
    settings = {
        "GCTD_NATS_URL": operator,
        "GCTD_MONITORING_URL": monitoring,
        "GCTD_DATABASE_URL": _database(options, postgres, "gctd"),
        "GCTD_CACHE_DIRECTORY": str(options.data_dir / "cache"),
        "GCTD_URL": gctd[0],
        "PANTRY_NATS_URL": operator,
        "PANTRY_MONITORING_URL": monitoring,
        "PANTRY_DATABASE_URL": _database(options, postgres, "pantry"),
        "PANTRY_URL": pantry[0],
    }
    inside = {
        **{name: value for name, value in settings.items() if name != "PANTRY_NATS_URL"},
        "GCTD_NATS_URL": tracker,
        "GCTD_HOST": "127.0.0.1",
        "GCTD_LOG_FORMAT": "json",  # which the console understands
        "PANTRY_SERVER_HOST": "127.0.0.1",
        "PANTRY_LOG_FORMAT": "json",
        "GRAPHQL_HOST": "127.0.0.1",
        "GRAPHQL_LOG_FORMAT": "json",
        "GRAPHQL_TRACKER_DATABASE": settings["GCTD_DATABASE_URL"],
        "GRAPHQL_PANTRY_DATABASE": settings["PANTRY_DATABASE_URL"],
        "GRAPHQL_NATS_URL": tracker,
        **({"GCTD_ALLOW_LOCAL": "true"} if options.allow_local else {}),
        **({"GCTD_REPLICAS": str(_SERVERS), "PANTRY_REPLICAS": str(_SERVERS)} if options.cluster else {}),
    }
    ledger = {name: value for name, value in inside.items() if not name.endswith("_NATS_URL")}
    ledger["PANTRY_NATS_URL"] = addresses_of[PANTRY.name]
    everywhere = {"gctd": gctd, "pantry": pantry, "graphql": graphql, "nats": nats}
    addresses = {name: urls if options.cluster else urls[0] for name, urls in everywhere.items() if urls}
    return System(
        directory=options.data_dir,
        brokers=_brokers(options, ports, access),
        operator=operator,
        declarations=_declarations(options),
        postgres=postgres,
        stages=(  # the gateway looks at the tables of the others
            (
                *_servers("serve", "gctd", "GCTD_PORT", ports.gctd, inside),
                *_servers("pantry", "pantry", "PANTRY_SERVER_PORT", ports.pantry, ledger),
            ),
            (
                *_servers("graphql", "graphql_fn", "GRAPHQL_PORT", ports.graphql, inside),
                *_workers(options.workers, gctd[0], inside),
            ),
        ),
        addresses=addresses,
        environment=settings,
        welcome=f"open {gctd[0]} in a browser, or, in another terminal: GCTD_URL={gctd[0]} {_program()} repo add URL "
        "(Ctrl-C ends all)",
    )


def _servers(name: str, module: str, variable: str, ports: Sequence[int], environment: Mapping[str, str]) -> list[Service]:
    """The services of a kind, `serve` of a module, each with its port in a variable."""
    return [
        Service(
            name=_numbered(name, number, ports),
            command=_command(module, "serve"),
            environment={**environment, variable: str(port)},
            ready=Ready(url=f"{_address(port)}/readyz"),
        )
        for number, port in enumerate(ports, start=1)
    ]


def _workers(count: int, gctd: str, environment: Mapping[str, str]) -> list[Service]:
    token = SETTINGS.load().values.auth_token
    announced = Ready(
        url=f"{gctd}/api/workers", headers={"Authorization": f"Bearer {token}"} if token else {}, is_right=_lists_the_worker
    )
    return [
        Service(
            name=f"worker-{number}",
            command=_command("gctd", "worker"),
            environment={**environment, "GCTD_WORKER_ID": f"worker-{number}"},
            ready=announced,
            patience=_DRAIN,
        )
        for number in range(1, count + 1)
    ]


def _declarations(options: Options) -> tuple[Declarations, ...]:
    """The streams as the services declare them, which may not create any. Raises SettingsError, DeclarationInvalid."""
    replicas = {"replicas": _SERVERS} if options.cluster else {}
    tracker, ledger = SETTINGS.load(replicas).values, LEDGER_SETTINGS.load(replicas).values
    return tracker_declarations(tracker), LEDGER.declarations(ledger)


def _brokers(options: Options, ports: _Ports, access: BrokerAccess) -> tuple[EmbeddedServer, ...]:
    names = [_numbered("nats", number, ports.nats) for number in range(1, len(ports.nats) + 1)]
    if not options.cluster:
        data = options.data_dir / names[0]
        return (EmbeddedServer(data, port=ports.nats[0], http_port=ports.monitoring[0], name="nats-server", access=access),)
    return tuple(
        EmbeddedServer(
            options.data_dir / name,
            port=port,
            http_port=http_port,
            name=name,
            membership=Membership(route, ports.routes),
            access=access,
        )
        for name, port, http_port, route in zip(names, ports.nats, ports.monitoring, ports.routes, strict=True)
    )


def _numbered(name: str, number: int, of: Sequence[object]) -> str:
    """A name as it is for the only one of a kind, else with a number."""
    return name if len(of) == 1 else f"{name}-{number}"


def _command(module: str, command: str) -> tuple[str, ...]:
    # -P: a folder named gctd in the working directory is not the program.
    return (sys.executable, "-P", "-m", module, command)


def _address(port: int, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{port}"


def _database(options: Options, postgres: PostgresServer | None, name: str) -> str:
    """The address of a service's database."""
    return f"sqlite:{options.data_dir / f'{name}.db'}" if postgres is None else postgres.url(name)


def _program() -> str:
    """The command line of the tracker, as it can be typed here."""
    program = Path(sys.executable).with_name("gctd")
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)


def _lists_the_worker(body: bytes, pid: int) -> bool:
    return any(worker["pid"] == pid and worker["status"] != "gone" for worker in json.loads(body))


def _ports(options: Options) -> _Ports:
    """The ports at their places above the base, which have to be free; where the base is 0, any that are. Raises PortInUse."""
    replicas, servers, gateways = (_REPLICAS, _SERVERS, 0) if options.cluster else (1, 1, 1)
    kinds = (
        (_GCTD, replicas),
        (_PANTRY, replicas),
        (_GRAPHQL, gateways),
        (_NATS, servers),
        (_ROUTE, servers),
        (_MONITORING, servers),
    )
    return _Ports(
        *(
            tuple(_port(options.port_base and options.port_base + first + _APART * number) for number in range(count))
            for first, count in kinds
        )
    )


def _port(wanted: int) -> int:
    """That port, which has to be free, or any free one for 0."""
    if not wanted:
        return free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise PortInUse(f"port {wanted}: {reason}; choose others with --port-base (0: free ports)") from error
    return wanted
