"""The stage `toolchain` of an attempt: the download of a Go that the host does not have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from gctd.domain.task.events import Progress

_MB = 10**6


async def _nothing(_: object) -> None:
    pass


@attrs.frozen
class DownloadStage:
    """Reports the stage and its progress."""

    _on_stage: Callable[[str], Awaitable[None]] = _nothing
    _on_progress: Callable[[Progress], Awaitable[None]] = _nothing

    async def begin(self) -> None:
        """Report that a download begins, or that another job's download is waited for."""
        await self._on_stage("toolchain")

    async def progressed(self, done: int, size: int | None) -> None:
        """Report the progress, in bytes, if the size is known."""
        if size:
            await self._on_progress(Progress(done=done // _MB, total=max(size // _MB, 1), unit="MB"))


UNREPORTED = DownloadStage()
