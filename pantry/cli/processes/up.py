"""`pantry up`: the ledger alone on this machine, with its own NATS."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import attrs
import click

from terminalkit import begin_invocation, examples, run_program

_PORT = 8080


@click.command(
    "up",
    epilog=examples("pantry up", "pantry up --host 0.0.0.0", "pantry up --port 9000 --data-dir /tmp/pantry"),
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for all data.  [default: .data/pantry of a checkout, else the user's data directory]",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on. Other machines and phones need a token there."
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0: a free one.  [default: 8080, or the next free one]")
@click.option("-v", "--verbose", is_flag=True, help="Show every log line.")
@click.pass_context
def up(ctx: click.Context, *, data_dir: Path | None, host: str, port: int | None, verbose: bool) -> int:
    """Run the ledger on this machine, with its own NATS: API, event stream and page.

    Commands in other terminals find it without PANTRY_URL. Ctrl-C stops it.
    """
    output = begin_invocation(ctx).output
    from platformdirs import user_data_path  # noqa: PLC0415 - help and completion do without it

    from eventlog.embedded import next_free_port  # noqa: PLC0415 - as above
    from pantry.settings import SETTINGS  # noqa: PLC0415 - as above
    from pantry.up import up as run  # noqa: PLC0415 - as above
    from terminalkit import checkout_root  # noqa: PLC0415 - as above

    root = checkout_root()
    data = data_dir or (root / ".data" / "pantry" if root is not None else user_data_path("pantry"))
    chosen = next_free_port(_PORT) if port is None else port
    if port is None and chosen != _PORT:
        output.note(f"port {_PORT} is in use, so the page is on {chosen}")
    settings = attrs.evolve(
        cast("Any", SETTINGS.load().values),
        host=host,
        port=chosen,
        log_level="info" if verbose else "warning",
        log_format="auto",
    )
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return run_program(run(settings, data.absolute(), output.line), settings)
