"""Services of measurements as processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import psutil


@attrs.frozen
class StartedService:
    """A service that listens on a port of this machine."""

    port: int
    process: psutil.Process


@asynccontextmanager
async def started(
    module: str, settings: Mapping[str, str], *, python: str | Path = sys.executable, directory: Path | None = None
) -> AsyncIterator[StartedService]:
    """Run `MODULE serve` on a free port with these environment variables, and end it on exit.

    `python` and `directory` are the interpreter and the working directory.
    """
    read, write = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", module, "serve", "--host", "127.0.0.1", "--port", "0", "--ready-fd", str(write)),
        env={**os.environ, **settings},
        cwd=directory,
        pass_fds=(write,),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        os.close(write)
        with os.fdopen(read) as ready:
            url = (await asyncio.to_thread(ready.read)).strip()
        yield StartedService(int(url.rpartition(":")[2]), psutil.Process(process.pid))
    finally:
        process.terminate()
        await process.wait()
