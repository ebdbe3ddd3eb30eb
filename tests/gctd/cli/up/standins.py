"""Runs the supervisor on stand-in services: `python -m tests.gctd.cli.up.standins DATA_DIR READY_FILE BEHAVIOUR...`.

Each behaviour is a stage with one service (see `standin`), `front`, `back-1`, `back-2`, … in this order.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from eventlog.embedded.nats import EmbeddedServer, free_port
from gctd.cli.up.children import ChildProgram, Ready
from gctd.cli.up.console import Console
from gctd.cli.up.places import Places
from gctd.cli.up.supervisor import ReadyFile, run
from gctd.cli.up.system import System


def standin(name: str, behaviour: str) -> ChildProgram:
    """A service that behaves so."""
    port = free_port()
    return ChildProgram(
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
        places=Places.below(Path(directory)),
        postgres=None,
        brokers=(EmbeddedServer(Path(directory) / "nats", port=nats_port, http_port=http_port, name="nats-server"),),
        stages=tuple((service,) for service in services),
        addresses={"nats": f"nats://127.0.0.1:{nats_port}", "monitoring": f"http://127.0.0.1:{http_port}"},
        environment={"SOME_SETTING": "its value"},
        screen="all is there",
        next="stop it",
    )
    sys.exit(asyncio.run(run(system, Console(verbose=False), ready=ReadyFile(Path(ready_file)))))
