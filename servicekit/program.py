"""The program of a service without commands beyond the common ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from projections.models import give
from terminalkit.commands.program import Command, Program
from terminalkit.commands.service_commands import config_command, serve_command
from terminalkit.config.flags import SettingFlags

if TYPE_CHECKING:
    from servicekit.service import Service


def program_of(service: Service) -> Program:
    """The program: `serve`, `config show`, and `projections` with its commands for the service's read model."""
    flags = SettingFlags.of(service.source)
    prefix, file = service.source.prefix, service.source.file
    serve = serve_command(
        flags,
        lambda: service.serve,
        settings=list(service.source.types),
        does="the service",
        token=f"{prefix}_AUTH_TOKEN",
        shows=[f"{service.name} serve --port 0", f"{service.name} serve --nats-url nats://127.0.0.1:4222"],
    )
    return Program(
        name=service.name,
        version=service.version,
        summary=service.summary or f"The service {service.name}.",
        epilog=f"Settings come from flags, then {prefix}_* in the environment, then {file}: see `{service.name} config show`.",
        commands={
            "serve": Command(serve, "Answer requests until a signal ends it."),
            "config": Command(config_command(flags, service.name), "Show the settings and where each comes from."),
            "projections": Command(_projections(service), "Look at the read model and the log: status, verify, rebuild, ..."),
        },
    )


def _projections(service: Service) -> click.Command:
    @click.command(
        "projections",
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help="The commands of `projections`, for this service's read model: `projections --help` lists them.",
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def projections(arguments: tuple[str, ...]) -> int:
        from projections.cli import main  # noqa: PLC0415 - slow, and seldom wanted

        give(service.model)
        return main(arguments)

    return projections
