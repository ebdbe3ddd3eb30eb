"""Runs the supervisor on stand-in services: `python -m tests.scripts.standins DATA_DIR READY_FILE BEHAVIOUR...`.

Each behaviour is a stage with one service (see `standin`), `front`, `back-1`, `back-2`, … in this order.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from launcher.console import Console
from launcher.service import Ready, Service
from launcher.system import System
from supervisor import ReadyFile, run

from eventlog.embedded.nats import EmbeddedServer
from eventlog.embedded.ports import free_port


def standin(name: str, behaviour: str) -> Service:
    """A service that behaves so."""
    port = free_port()
    return Service(
        name=name,
        command=(sys.executable, str(Path(__file__).with_name("standin.py")), str(port), behaviour),
        ready=Ready(url=f"http://127.0.0.1:{port}/readyz"),
        patience=3.0,
    )


if __name__ == "__main__":
    directory, ready_file, *behaviours = sys.argv[1:]
    services = [standin(f"service-{number}", behaviour) for number, behaviour in enumerate(behaviours, start=1)]
    nats_port, http_port = free_port(), free_port()
    system = System(
        directory=Path(directory),
        postgres=None,
        brokers=(EmbeddedServer(Path(directory) / "nats", port=nats_port, http_port=http_port, name="nats-server"),),
        stages=tuple((service,) for service in services),
        addresses={"nats": f"nats://127.0.0.1:{nats_port}", "monitoring": f"http://127.0.0.1:{http_port}"},
        environment={"SOME_SETTING": "its value"},
        welcome="all is there",
    )
    sys.exit(asyncio.run(run(system, Console(verbose=False), ready=ReadyFile(Path(ready_file)))))
