"""Options that several commands have: the read model, the addresses of its log and database, and the settings of its service."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from projections.errors import ModelUnknown
from projections.models import default_name, load, names
from terminalkit.coroutine import completion_command
from terminalkit.display.output import Output
from terminalkit.display.progress_bar import bar

if TYPE_CHECKING:
    from pathlib import Path

    from eventlog.admin.declarations import Declarations
    from eventlog.jetstream.connection import Connection
    from eventlog.jetstream.log import JetStreamLog
    from projections.model import ReadModel, SettingNames, StreamSetting
    from projections.projector.projector import Projector
    from projections.rebuild.operations import OperationKind, OperationResult
    from projections.rebuild.verify import Run
    from projections.store import Parked
    from terminalkit.config.running import RunningSystem

_PATIENCE = 5.0
"""Seconds that the broker has to answer in: somebody sits in front of it."""
NATS_URL = "nats://nats.infra.svc:4222"
NATS_VARIABLE = "NATS_URL"

completion = completion_command("projections", "commands and options")


class _ModelName(click.ParamType[str]):
    """A read model: a name that is installed, or a place."""

    name = "model"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


def _model(ctx: click.Context, option: click.Parameter, value: str | None) -> ReadModel:
    del option
    return _loaded(value, ctx)


def _loaded(place: str | None, ctx: click.Context) -> ReadModel:
    """A read model by its name or place; without a name the default. Raises click.UsageError."""
    name = place or _usual_name()
    if name is None:
        known = ", ".join(names()) or "none"
        raise click.UsageError(f"which read model? name it with --model; installed: {known}; or module:NAME", ctx)
    if ":" in name and "" not in sys.path:
        sys.path.insert(0, "")  # a model in the working directory, as `python -m` finds it
    try:
        return load(name)
    except ModelUnknown as error:
        raise click.UsageError(str(error), ctx) from error


def _usual_name() -> str | None:
    """The read model for commands that name none: of the only service that runs, unless the default is configured."""
    usual = default_name()
    if usual is None or len(names()) == 1:
        return usual
    if _set_value(load(usual).settings, load(usual).settings.database) is not None:
        return usual
    settings = {name: load(name).settings for name in names()}
    running = [name for name, its in settings.items() if _running_service({its.variable(its.database)}, {}) is not None]
    return running[0] if len(running) == 1 else usual


def _asked_for(ctx: click.Context) -> ReadModel:
    """The read model that a command is about."""
    model: ReadModel | None = ctx.params.get("model")
    return model or model_named(ctx.params.get("name"))


def _settings(ctx: click.Context) -> SettingNames | None:
    """How the service is configured whose read model a command is about; None if it is about none, and there is no default."""
    if "model" not in ctx.params and ctx.params.get("name") is None and _usual_name() is None:
        return None
    return _asked_for(ctx).settings


def _nats(ctx: click.Context, option: click.Parameter, value: str | None) -> str:
    """The address that is given, else the one that the service of the read model is configured with."""
    del option
    if value:
        return value
    settings = _settings(ctx)
    return (settings and address_of(settings, settings.nats, _chosen(ctx, settings))) or NATS_URL


def _chosen(ctx: click.Context, settings: SettingNames) -> Mapping[str, str]:
    """The addresses that options give, as far as they are known by now, by the keys of the settings."""
    options = {settings.nats: "nats_url", settings.database: "database"}
    return {key: ctx.params[option] for key, option in options.items() if ctx.params.get(option)}


def replicas_of(ctx: click.Context, option: click.Parameter, value: int | None) -> int:
    """The number of servers that is given, else the one that the service is configured with, else 1."""
    settings = _settings(ctx) if value is None else None
    configured = None if settings is None else value_of(settings, "replicas", _chosen(ctx, settings))
    return value or (1 if configured is None else int(option.type.convert(configured, option, ctx)))


def declared(file: Path | None, replicas: int) -> Declarations:
    """The declarations of a file, as the installed services apply them: with the fields that their settings replace.

    `file` is by default the `streams.yaml` that came along. Raises click.UsageError, DeclarationInvalid.
    """
    from eventlog.admin import declarations

    known = declarations.load_declarations(file).names
    configured = overrides_of(_loaded(name, click.get_current_context()) for name in names())
    overrides = {name: fields for name, fields in configured.items() if name in known}
    return declarations.load_declarations(file, replicas=replicas, overrides=overrides)


def _database(ctx: click.Context, option: click.Parameter, value: str | None) -> str:
    """The address that is given, else the one that the service of the read model is configured with."""
    if value:
        return value
    settings = _asked_for(ctx).settings
    if address := address_of(settings, settings.database, _chosen(ctx, settings)):
        return address
    also = (
        f"No running service of yours announces it. It may be set as {settings.variable(settings.database)}, or as "
        f"{settings.database} in {settings.file}."
    )
    raise click.MissingParameter(also, ctx, option)


nats_option = click.option(
    "--nats-url",
    envvar=NATS_VARIABLE,
    callback=_nats,
    metavar="ADDRESS",
    help=(
        f"Address of the broker; else {NATS_VARIABLE}, else as the service is configured: <SERVICE>_NATS_URL, its settings file, "
        f"or the running service.  [default: {NATS_URL}]"
    ),
)
database_option = click.option(
    "--database",
    callback=_database,
    metavar="ADDRESS",
    help=(
        "Database of the read model: sqlite:PATH, or postgresql://USER@HOST/NAME; else as the service is configured: "
        "<SERVICE>_DATABASE_URL, its settings file, or the running service."
    ),
)
model_option = click.option(
    "--model",
    "model",
    type=_ModelName(),
    callback=_model,
    is_eager=True,
    help="The read model: one that is installed, or module:NAME.  [default: the one that is installed as default]",
)


def model_named(name: str | None) -> ReadModel:
    """The read model of that name or place, or the installed one that a projection of that name belongs to.

    Without a name the default. Raises click.UsageError.
    """
    context = click.get_current_context()
    if name is None or ":" in name or name in names():
        return _loaded(name, context)
    models = [load(installed) for installed in names()]
    for model in models:
        if any(projection.name == name for projection in model.projections):
            return model
    every = ", ".join(f"{model.name} ({', '.join(p.name for p in model.projections)})" for model in models)
    raise click.UsageError(f"{name!r} is neither a read model nor a projection; there are {every}, or module:NAME", context)


@asynccontextmanager
async def connected(nats_url: str) -> AsyncIterator[Connection]:
    """A connection to the broker. Raises eventlog.Unavailable."""
    from eventlog.jetstream.connection import Connection

    async with Connection.open(nats_url, name="projections", timeout=_PATIENCE) as connection:
        yield connection


@asynccontextmanager
async def opened_log(nats_url: str, model: ReadModel) -> AsyncIterator[JetStreamLog]:
    """The event log that a read model is made from. Raises eventlog.Unavailable."""
    from eventlog.jetstream.log import JetStreamLog

    async with connected(nats_url) as connection:
        yield JetStreamLog(connection, model.stream, model.registry)


def parked_line(parked: Parked) -> str:
    """A parked aggregate in a line."""
    return f"{parked.projection} {parked.subject}: sequence {parked.sequence}, {parked.waiting} wait: {parked.error}"


def with_progress(output: Output, what: str) -> Run:
    """Return a function that runs a projector with a progress bar."""

    async def run(projector: Projector, until: int) -> None:
        async with bar(output, what, "events", lambda: (projector.status().position, until)):
            await projector.run(until=until)

    return run


async def carried_out(
    kind: OperationKind,
    database: str,
    log: JetStreamLog,
    model: ReadModel,
    *,
    projection: str | None = None,
    aggregate: str | None = None,
) -> OperationResult:
    """Let the running service do an operation, or do it in this process if no service runs.

    Raises OperationRefused, ProjectionError, Unavailable, OutcomeUnknown, StoreInUse.
    """
    import msgspec

    from eventlog import OutcomeUnknown, Unavailable
    from eventlog.jetstream.requests import ask
    from projections.projector.projector import Projector
    from projections.rebuild.operations import Operation, OperationHandler, outcome_of, subject_of
    from projections.stores.databases import copies_of, store_at

    store = store_at(database)
    operation = Operation(kind=kind, database=store.identity, projection=projection, aggregate=aggregate)
    try:
        return outcome_of(await ask(log.connection, subject_of(model), msgspec.json.encode(operation)))
    except OutcomeUnknown:
        raise
    except Unavailable:  # no service runs, so the tables are not in use
        async with store:
            projector = Projector(log, store, model)
            await projector.load()
            return await OperationHandler(projector, store, copies_of(store), log, model).do(operation)


# The settings of the service of a read model


def value_of(settings: SettingNames, key: str, chosen: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The value that the service has under a key: of its variable, its file, or the running service; None if it has none.

    `chosen` are addresses that options give, by key. Raises click.UsageError for a file that cannot be read, or if several
    running services fit.
    """
    value = _set_value(settings, key)
    if value is not None:
        return value
    addresses = {address: chosen.get(address) or _set_value(settings, address) for address in (settings.nats, settings.database)}
    known = {settings.variable(address): value for address, value in addresses.items() if isinstance(value, str)}
    variable = settings.variable(key)
    system = _running_service({variable}, known)
    return None if system is None else system.variables[variable]


def address_of(settings: SettingNames, key: str, chosen: Mapping[str, str]) -> str | None:
    """The address that the service has under a key; None if it has none. `chosen` and the errors are as of `value_of`."""
    value = value_of(settings, key, chosen)
    if value is not None and not isinstance(value, str):
        raise click.UsageError(f"{settings.file}: {key} must be a text")
    return value or None


def overrides_of(models: Iterable[ReadModel]) -> Mapping[str, Mapping[str, str]]:
    """The fields of `streams.yaml` that the services of these read models are configured with.

    Raises click.UsageError for a value that cannot be right.
    """
    return {name: fields for model in models for name, fields in model.overrides(partial(_override, model.settings)).items()}


def _override(settings: SettingNames, setting: StreamSetting) -> str | float | None:
    from terminalkit.config.loading import parse_duration

    value = value_of(settings, setting.key)
    if isinstance(value, str) and setting.duration:
        try:
            return parse_duration(value)
        except ValueError as error:
            raise click.UsageError(f"the setting {setting.key} ({settings.variable(setting.key)}) {error}") from error
    if value is None or isinstance(value, str) or (setting.duration and isinstance(value, (int, float))):
        return value
    raise click.UsageError(f"{settings.file}: {setting.key} must be a text")


def _set_value(settings: SettingNames, key: str) -> Any:
    """The value of a variable or a file; None without one."""
    from terminalkit.config.loading import file_of, read_file

    if value := os.environ.get(settings.variable(key)):
        return value
    with _errors_of_usage():
        return None if (file := file_of(settings.file)) is None else read_file(file).get(key)


def _running_service(variables: Collection[str], known: Mapping[str, str]) -> RunningSystem | None:
    from terminalkit.config.running import running_system

    with _errors_of_usage():
        return running_system(variables, known)


@contextmanager
def _errors_of_usage() -> Iterator[None]:
    """Report a file that cannot be read, and several systems that fit, as a wrong command line."""
    from httpkit.errors import HttpkitError

    try:
        yield
    except HttpkitError as error:
        raise click.UsageError(str(error)) from error
