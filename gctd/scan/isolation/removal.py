"""Removal of files that untrusted code has written: without following links, at any depth, with any permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import structlog

from gctd.scan.isolation.process import Limits, run

_SECONDS = 600.0
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_LIMITS = Limits(free_space=None)

_log = structlog.get_logger(__name__)


async def remove(path: Path) -> bool:
    """Remove a file or a directory with its content. Report whether it is gone. Cancelling does not stop the removal.

    It uses rm(1): shutil.rmtree recurses, and fails on a tree of some thousand levels, which a test can leave behind.
    """
    return await _to_the_end(_remove(path))


async def _remove(path: Path) -> bool:
    for attempt in (0, 1):
        done = await run(["rm", "-rf", "--", str(path)], cwd=Path("/"), env=_ENVIRONMENT, timeout=_SECONDS, limits=_LIMITS)
        if done.ok:
            return True
        if attempt == 0:  # directories without permission to write in them
            command = ["chmod", "-R", "u+rwX", "--", str(path)]
            await run(command, cwd=Path("/"), env=_ENVIRONMENT, timeout=_SECONDS, limits=_LIMITS)
        else:
            _log.error("cannot be removed", path=str(path), reason=done.output_tail[-500:])
    return False


async def _to_the_end(work: Coroutine[Any, Any, bool]) -> bool:
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
