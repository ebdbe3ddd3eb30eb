"""The system on this machine, as data: programs, addresses, settings. A further service is added here."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import attrs

from eventlog.admin import Declarations, load_declarations
from eventlog.embedded import BrokerAccess, EmbeddedServer, Membership
from gctd.broker.broker import overrides
from gctd.cli.up.children import ChildProgram, Ready
from gctd.cli.up.places import Places
from gctd.cli.up.ports import Ports, choose
from gctd.cli.up.users import OPERATOR, PANTRY, TRACKER, USERS
from gctd.settings import SETTINGS
from projections.stores import PostgresServer
from terminalkit import SettingsError, parse_duration, show_duration

_SERVERS, _REPLICAS = 3, 2
"""How many nats-servers, and how many of each service, a cluster has."""

_SPARE = 10.0
"""Seconds after which a program is killed that has not ended within the time of its settings."""

_ENDS = {"gctd": "GCTD_SHUTDOWN_TIMEOUT", "pantry": "PANTRY_SERVER_SHUTDOWNTIMEOUT", "graphql_fn": "GRAPHQL_SHUTDOWN_TIMEOUT"}
"""The variable of each service with the time for open requests at the end."""

CREDENTIALS = "credentials.json"
"""The file in the data directory with the passwords of the broker."""

DATABASES = ("gctd", "pantry")
"""The databases of the services, if they are not files."""

_LEDGER = "PANTRY"
"""The event stream of the ledger, which is started as a program and declares it in the same way."""
_LEDGER_SIZE = "PANTRY_EVENT_STORE_MAX_BYTES"


@attrs.frozen(kw_only=True)
class Options:
    """The choices of the user: see the help of `gctd up`. `port_base` None: the first free ports."""

    cluster: bool = False
    data_dir: Path | None = None
    port_base: int | None = None
    workers: int | None = None
    postgres: bool = False
    allow_local: bool = False


@attrs.frozen(kw_only=True)
class System:
    """The parameters of the supervisor.

    The programs of one stage are ready when the programs of the stage before are. Before all come the `brokers`, and Postgres
    if there is one, with the databases `DATABASES`.
    `addresses` are written to the ready file, `environment` has the variables of commands for this system. `screen` and `next`
    are the texts for the user: the places of everything, and the next steps. `declared` is applied before the programs start,
    through the address `operator`, because the services may not create streams.
    """

    places: Places
    brokers: tuple[EmbeddedServer, ...]
    postgres: PostgresServer | None
    stages: tuple[tuple[ChildProgram, ...], ...]
    addresses: Mapping[str, str | Sequence[str]]
    environment: Mapping[str, str]
    screen: str
    next: str
    operator: str | None = attrs.field(default=None, repr=False)
    declared: Declarations = attrs.field(factory=lambda: Declarations(()))
    note: str | None = None


def plan(options: Options, places: Places) -> System:
    """Return the system for these options. Raises PortInUse, SettingsError, DeclarationInvalid, CredentialsDamaged."""
    cluster = options.cluster
    ports = choose(
        options.port_base,
        services=_REPLICAS if cluster else 1,
        gateways=0 if cluster else 1,
        brokers=_SERVERS if cluster else 1,
    )
    postgres = PostgresServer(places.data / "postgres") if options.postgres or cluster else None
    access = BrokerAccess.kept_in(places.data / CREDENTIALS, USERS)
    addresses_of = {user.name: ",".join(access.address(user.name, port) for port in ports.nats) for user in USERS}
    operator, tracker = addresses_of[OPERATOR.name], addresses_of[TRACKER.name]
    gctd, pantry, graphql = ([_address(port) for port in each] for each in (ports.gctd, ports.pantry, ports.graphql))
    monitoring = ",".join(_address(port) for port in ports.monitoring)
    declared = _declarations(cluster=cluster)
    settings = {
        "GCTD_NATS_URL": operator,
        "GCTD_MONITORING_URL": monitoring,
        "GCTD_DATABASE_URL": _database(places, postgres, "gctd"),
        "GCTD_CACHE_DIRECTORY": str(places.cache),
        "GCTD_URL": gctd[0],
        "PANTRY_NATS_URL": operator,
        "PANTRY_MONITORING_URL": monitoring,
        "PANTRY_DATABASE_URL": _database(places, postgres, "pantry"),
        "PANTRY_URL": pantry[0],
        **({"GCTD_REPLICAS": str(_SERVERS), "PANTRY_REPLICAS": str(_SERVERS)} if cluster else {}),
    }
    inside = {
        **{name: value for name, value in settings.items() if name != "PANTRY_NATS_URL"},
        "GCTD_NATS_URL": tracker,
        "GCTD_HOST": "127.0.0.1",
        "GCTD_LOG_FORMAT": "json",  # which the console understands
        "PANTRY_SERVER_HOST": "127.0.0.1",
        "PANTRY_LOG_FORMAT": "json",
        _LEDGER_SIZE: _size_of_ledger(declared),
        "GRAPHQL_HOST": "127.0.0.1",
        "GRAPHQL_LOG_FORMAT": "json",
        "GRAPHQL_TRACKER_DATABASE": settings["GCTD_DATABASE_URL"],
        "GRAPHQL_PANTRY_DATABASE": settings["PANTRY_DATABASE_URL"],
        "GRAPHQL_NATS_URL": tracker,
        **_ends(),
        **({"GCTD_ALLOW_LOCAL": "true"} if options.allow_local else {}),
    }
    ledger = {name: value for name, value in inside.items() if not name.endswith("_NATS_URL")}
    ledger["PANTRY_NATS_URL"] = addresses_of[PANTRY.name]
    nats = [_address(port, "nats") for port in ports.nats]
    everywhere = {"gctd": gctd, "pantry": pantry, "graphql": graphql, "nats": nats}
    workers = options.workers if options.workers is not None else _REPLICAS if cluster else 1
    return System(
        places=places,
        brokers=_brokers(places, ports, access),
        operator=operator,
        declared=declared,
        postgres=postgres,
        stages=(  # the gateway looks at the tables of the others
            (
                *_servers("serve", "gctd", "GCTD_PORT", ports.gctd, inside),
                *_servers("pantry", "pantry", "PANTRY_SERVER_PORT", ports.pantry, ledger),
            ),
            (
                *_servers("graphql", "graphql_fn", "GRAPHQL_PORT", ports.graphql, inside),
                *_workers(workers, gctd[0], inside),
            ),
        ),
        addresses={name: urls if cluster else urls[0] for name, urls in everywhere.items() if urls},
        environment=settings,
        screen=_screen({"dashboard": gctd, "pantry": pantry, "graphql": graphql, "data": [str(places.data)]}),
        next=f"{_line('next', f'{_program()} repo add https://github.com/owner/name')}\n  Ctrl-C stops",
        note=ports.note,
    )


def _screen(shown: Mapping[str, Sequence[str]]) -> str:
    lines = (_line(name, "  ".join(values)) for name, values in shown.items() if values)
    return "\n".join([f"gctd {version('gctd')}", *lines])


def _line(name: str, text: str) -> str:
    return f"  {name:<9}  {text}"


def _servers(name: str, module: str, variable: str, ports: Sequence[int], environment: Mapping[str, str]) -> list[ChildProgram]:
    """The services of a kind, `serve` of a module, each with its port in a variable."""
    return [
        ChildProgram(
            name=_numbered(name, number, ports),
            command=_command(module, "serve"),
            environment={**environment, variable: str(port)},
            ready=Ready(url=f"{_address(port)}/readyz"),
            patience=_seconds(_ENDS[module], environment[_ENDS[module]]) + _SPARE,
        )
        for number, port in enumerate(ports, start=1)
    ]


def _workers(count: int, gctd: str, environment: Mapping[str, str]) -> list[ChildProgram]:
    settings = SETTINGS.load().values
    token = settings.auth_token
    announced = Ready(
        url=f"{gctd}/api/workers", headers={"Authorization": f"Bearer {token}"} if token else {}, is_right=_lists_the_worker
    )
    return [
        ChildProgram(
            name=f"worker-{number}",
            command=_command("gctd", "worker"),
            environment={**environment, "GCTD_WORKER_ID": f"worker-{number}"},
            ready=announced,
            patience=settings.drain_timeout + _SPARE,
        )
        for number in range(1, count + 1)
    ]


def _ends() -> Mapping[str, str]:
    """Return the time for open requests at the end, by variable: the tracker's if none is set. Raises SettingsError."""
    usual = show_duration(SETTINGS.load().values.shutdown_timeout)
    return {name: os.environ.get(name) or usual for name in _ENDS.values()}


def _seconds(name: str, text: str) -> float:
    """Return the seconds of a variable. Raises SettingsError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from error


def _declarations(*, cluster: bool) -> Declarations:
    """The streams of all services, which may not create any. Raises SettingsError, DeclarationInvalid."""
    settings = SETTINGS.load({"replicas": _SERVERS} if cluster else {}).values
    size = os.environ.get(_LEDGER_SIZE)
    ledger = {} if size is None else {_LEDGER: {"max_bytes": size}}
    return load_declarations(replicas=settings.replicas, overrides={**overrides(settings), **ledger})


def _size_of_ledger(declared: Declarations) -> str:
    """Return the size of the ledger's stream as its setting has it: its program must declare the same."""
    size: int = next(stream.config["max_bytes"] for stream in declared.streams if stream.name == _LEDGER)
    return os.environ.get(_LEDGER_SIZE) or f"{size // 1024}KiB"


def _brokers(places: Places, ports: Ports, access: BrokerAccess) -> tuple[EmbeddedServer, ...]:
    names = [_numbered("nats", number, ports.nats) for number in range(1, len(ports.nats) + 1)]
    if len(names) == 1:
        data = places.data / names[0]
        return (EmbeddedServer(data, port=ports.nats[0], http_port=ports.monitoring[0], name="nats-server", access=access),)
    return tuple(
        EmbeddedServer(
            places.data / name,
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


def _database(places: Places, postgres: PostgresServer | None, name: str) -> str:
    """The address of a service's database."""
    return f"sqlite:{places.data / f'{name}.db'}" if postgres is None else postgres.url(name)


def _program() -> str:
    """Return the command line of the tracker, as it can be typed in another terminal."""
    program = Path(sys.executable).with_name("gctd")
    on_path = shutil.which("gctd")
    if on_path is not None and Path(on_path).resolve() == program.resolve():
        return "gctd"
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)


def _lists_the_worker(body: bytes, pid: int) -> bool:
    return any(worker["pid"] == pid and worker["status"] != "gone" for worker in json.loads(body))
