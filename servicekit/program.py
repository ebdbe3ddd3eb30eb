"""The program of a service without commands beyond the common ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from projections.model import ReadModel
from projections.models import give
from terminalkit.config.flags import SettingFlags
from terminalkit.config.loading import SettingsSource
from terminalkit.program import Command, Program
from terminalkit.service_commands import Serve, config_command, serve_command


def service_program(
    *,
    name: str,
    version: str,
    summary: str,
    source: SettingsSource[Any],
    model: ReadModel,
    serve: Serve,
    database: Callable[[Any], str],
) -> Program:
    """The program of a service: `serve`, `config show`, and `projections` with its commands for this read model.

    `database` gives the address of its database from its settings.
    """
    flags, prefix = SettingFlags.of(source), source.prefix
    command = serve_command(
        flags,
        lambda: serve,
        settings=list(source.types),
        does="the service",
        token=f"{prefix}_AUTH_TOKEN",
        shows=[f"{name} serve --port 0", f"{name} serve --nats-url nats://127.0.0.1:4222"],
        effective=lambda values: {"database_url": database(values)},
    )
    return Program(
        name=name,
        version=version,
        summary=summary,
        epilog=f"Settings come from flags, then {prefix}_* in the environment, then {source.file}: see `{name} config show`.",
        commands={
            "serve": Command(command, "Answer requests until a signal ends it."),
            "config": Command(config_command(flags, name), "Show the settings and where each comes from."),
            "projections": Command(_projections(model), "Look at the read model and the log: status, verify, rebuild, ..."),
        },
    )


def _projections(model: ReadModel) -> click.Command:
    @click.command(
        "projections",
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help="The commands of `projections`, for this service's read model: `projections --help` lists them.",
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def projections(arguments: tuple[str, ...]) -> int:
        from projections.cli import main  # noqa: PLC0415 - slow, and seldom wanted

        give(model)
        return main(arguments)

    return projections
