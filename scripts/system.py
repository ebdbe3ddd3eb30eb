"""What the system on this machine consists of, as data: services, addresses, settings. A further service is added here."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
from options import Options
from service import Service

_GCTD, _NATS = 0, 9
"""Where a service's port stands above the port base."""


class PortInUse(Exception):
    """A port that was asked for is taken."""


@attrs.frozen(kw_only=True)
class System:
    """All that the supervisor needs to know.

    The services of one stage start together, when those of the stage before are ready, and nats-server before all.
    `addresses` are shown and written to the ready file, `environment` is what a command needs to reach this system.
    """

    directory: Path
    nats_port: int
    stages: tuple[tuple[Service, ...], ...]
    addresses: Mapping[str, str]
    environment: Mapping[str, str]


def plan(options: Options) -> System:
    """The system that the options ask for. Raises PortInUse."""
    port, nats_port = _port(options.port_base, _GCTD), _port(options.port_base, _NATS)
    gctd, nats = f"http://127.0.0.1:{port}", f"nats://127.0.0.1:{nats_port}"
    settings = {
        "GCTD_NATS_URL": nats,
        "GCTD_DATABASE_URL": f"sqlite:{options.data_dir / 'gctd.db'}",
        "GCTD_CACHE_DIRECTORY": str(options.data_dir / "cache"),
        "GCTD_ALLOW_LOCAL": "true" if options.allow_local else "false",
    }
    program = (sys.executable, "-m", "gctd")
    serve = Service(
        name="serve",
        command=(*program, "serve"),
        environment={**settings, "GCTD_HOST": "127.0.0.1", "GCTD_PORT": str(port)},
        ready_url=f"{gctd}/readyz",
    )
    workers = tuple(
        Service(name=f"worker-{number}", command=(*program, "worker"), environment=settings, patience=30.0)
        for number in range(1, options.workers + 1)
    )
    return System(
        directory=options.data_dir,
        nats_port=nats_port,
        stages=((serve,), workers),
        addresses={"gctd": gctd, "nats": nats},
        environment={**settings, "GCTD_URL": gctd},
    )


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
