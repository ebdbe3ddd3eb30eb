"""The ledger alone, with its own nats-server: one process and its child."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import attrs
import structlog

from eventlog import until_one_ends
from eventlog.admin import apply_declarations
from eventlog.embedded import BrokerAccess, BrokerUser, DataDirectoryInUse, EmbeddedServer, ServerFailed, free_port
from eventlog.jetstream import Connection
from httpkit import ListenAddress
from pantry.serve import SERVICE, serve
from pantry.settings import Settings
from servicekit import keep_running, mend
from terminalkit import announced_system

_USER = BrokerUser(name="pantry")
_log = structlog.get_logger(__name__)


async def up(settings: Settings, data: Path, show: Callable[[str], None]) -> None:
    """Serve the ledger on its own nats-server until a signal ends it; `show` gets the text for the user once it answers.

    Raises DataDirectoryInUse, ServerFailed, CredentialsDamaged, and the errors of the service.
    """
    access = BrokerAccess.kept_in(data / "credentials.json", (_USER,))
    port = free_port()
    server = EmbeddedServer(data / "nats", port=port, http_port=free_port(), access=access, name="nats-server")
    async with server, contextlib.AsyncExitStack() as stack:
        own: Settings = attrs.evolve(
            cast("Any", settings),
            nats_url=access.address(_USER.name, port),
            monitoring_url=server.monitoring_url,
            database_url=f"sqlite:{data / 'pantry.db'}",
        )

        async with Connection.open(access.address(_USER.name, port), name="pantry up") as connection:
            await apply_declarations(connection, SERVICE.declarations(own), room=server.room)

        def ready(address: ListenAddress) -> None:
            page = own.public_url or address.url
            named = page if address.secure else address.url  # the certificate has the public name
            variables = {
                "PANTRY_URL": named,
                "PANTRY_NATS_URL": own.nats_url,
                "PANTRY_MONITORING_URL": server.monitoring_url,
                "PANTRY_DATABASE_URL": own.database_url,
            }
            stack.enter_context(announced_system("pantry up", variables))
            show(
                f"pantry {version('gctd')}\n"
                f"  page   {page}\n"
                f"  data   {data}\n"
                "  next   pantry product add 4006381333931 --name Flour --unit kg\n"
                "  Ctrl-C stops"
            )

        # Another ledger that is started on the data directory may have it for a moment, until it finds the database in use.
        keeping = keep_running(server, _log.warning, failures=(ServerFailed, DataDirectoryInUse))
        for ended in await until_one_ends(keeping, mend(server, _log.warning), serve(own, on_ready=ready)):
            if not ended.cancelled():
                ended.result()
