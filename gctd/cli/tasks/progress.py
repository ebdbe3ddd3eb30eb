"""Progress on standard error: redrawn in place on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import attrs

from gctd.cli.tables.states import PHASE_COLOURS
from gctd.client.resources import Repo, Task
from terminalkit.display import Output, duration, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FIRST_DRAWN = 1.0
"""Seconds after which progress is drawn on a terminal: shorter work needs none."""

REDRAWN = 0.25
SIGN_OF_LIFE = 10.0
"""Seconds without a change after which a line off a terminal shows that the work continues."""

_SPINNER = "|/-\\"
_LONG_STAGES = {
    "toolchain": "downloading Go, once per machine",
    "stdlib": "preparing Go's standard library, built once per machine",
}
"""The work of a long stage, and the reason for its length."""
_NAMED = 2
"""Running items that a line without a change names."""


@attrs.frozen(kw_only=True)
class ProgressItem:
    """Something that the command waits for, at one moment of its life.

    `name` identifies it among the others, `state` is a word or a phrase, `phase` classifies its state. It was `asked` for at one
    time and `changed` last at another. No change follows after it has `ended`.
    """

    key: str
    name: str
    state: str
    phase: str
    asked: datetime
    changed: datetime
    ended: bool

    def seconds(self) -> float:
        """The seconds of the wait, by the server's clock until the last change, and by the local clock since then."""
        until = self.changed if self.ended else max(self.changed, datetime.now(UTC))
        return (until - self.asked).total_seconds()


def task_item(task: Task) -> ProgressItem:
    """Return the progress of a task: stage, attempt, worker, and the reason if the last attempt failed."""
    running = task.state == "running"
    state = f"running: {_LONG_STAGES.get(task.stage, task.stage)}" if running and task.stage else task.state
    state = f"{state}, {task.progress}" if running and task.progress else state
    attempt = f", attempt {task.attempt}/{task.max_attempts}" if task.attempt else ""
    worker = f" on {task.worker}" if running and task.worker else ""
    reason = f" ({task.reason})" if task.reason and not running and not task.completed else ""
    return ProgressItem(
        key=task.id,
        name=f"{task.id} {task.project}",
        state=f"{state}{attempt}{worker}{reason}",
        phase=task.state,
        asked=task.created_at,
        changed=task.updated_at,
        ended=task.ended,
    )


def repo_item(repo: Repo, asked: datetime) -> ProgressItem:
    """Return the progress of the search for a repository's projects, requested at `asked` by the local clock."""
    reason = f" ({repo.reason})" if repo.reason else ""
    return ProgressItem(
        key=repo.id,
        name=repo.url,
        state=f"{repo.status}{reason}",
        phase=repo.status,
        asked=asked,
        changed=datetime.now(UTC),
        ended=not repo.registering,
    )


class ProgressDisplay(Protocol):
    """Shows items as they change."""

    def show(self, item: ProgressItem) -> None:
        """The item has this state now."""


@asynccontextmanager
async def progress(output: Output, *, shown: bool = True) -> AsyncIterator[ProgressDisplay]:
    """Provide progress in the form of the output and its terminal, until the block is left; none unless `shown`."""
    if not shown or not output.shows_progress:
        yield _Silent()
        return
    console = output.progress_console
    display = _Lines(output) if console is None else _Drawing(console)
    ticking = asyncio.create_task(display.tick())
    try:
        yield display
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking
        display.close()


class _Silent:
    def show(self, item: ProgressItem) -> None:
        pass


class _Lines:
    """A line for each change, and a summary after a while without changes."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._items: dict[str, ProgressItem] = {}
        self._said = time.monotonic()

    def show(self, item: ProgressItem) -> None:
        before = self._items.get(item.key)
        self._items[item.key] = item
        if before is None or before.state != item.state:
            self._say(f"{item.name}  {item.state}  {duration(item.seconds())}")

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(max(self._said + SIGN_OF_LIFE - time.monotonic(), 0.01))
            waiting = [item for item in self._items.values() if not item.ended]
            if waiting and time.monotonic() - self._said >= SIGN_OF_LIFE:
                self._say(f"{_in_words(waiting)}  {duration(max(item.seconds() for item in waiting))}")
            elif not waiting:
                self._said = time.monotonic()

    def close(self) -> None:
        pass

    def _say(self, text: str) -> None:
        self._output.note(text)
        self._said = time.monotonic()


class _Drawing:
    """All items at once, redrawn a few times a second. Waiting and running items take the place of ended ones."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live  # noqa: PLC0415 - only for progress on a terminal

        self._items: dict[str, ProgressItem] = {}
        self._console = console
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._began = time.monotonic()
        self._frames = 0

    def show(self, item: ProgressItem) -> None:
        self._items[item.key] = item

    async def tick(self) -> None:
        await asyncio.sleep(FIRST_DRAWN)
        self._live.start()
        while True:
            self._frames += 1
            self._live.update(self._drawn(), refresh=True)
            await asyncio.sleep(REDRAWN)

    def close(self) -> None:
        if self._live.is_started:
            self._live.update(self._drawn(), refresh=True)
            self._live.stop()

    def _drawn(self) -> Table:
        from rich.table import Table  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415 - as above

        items = sorted(self._items.values(), key=lambda item: (item.ended, item.phase != "running"))
        room = max(shutil.get_terminal_size().lines - 3, 1)
        table = Table.grid(padding=(0, 2))
        for item in items[:room]:
            sign = _SPINNER[self._frames % len(_SPINNER)] if not item.ended else " "
            state = Text(printable(item.state), PHASE_COLOURS.get(item.phase, ""), overflow="ellipsis", no_wrap=True)
            table.add_row(Text(sign), Text(printable(item.name), no_wrap=True), state, Text(duration(item.seconds())))
        if len(items) > room:
            table.add_row(Text(" "), Text(f"and {_summary(items[room:])}"))
        return table


def _in_words(items: Sequence[ProgressItem]) -> str:
    """`orders  running: test; 5 queued`: the running items with their states, unless they are many."""
    running = [item for item in items if item.phase == "running"]
    if not 0 < len(running) <= _NAMED:
        return _summary(items)
    waiting = [item for item in items if item.phase != "running"]
    return "; ".join([*(f"{item.name}  {item.state}" for item in running), *([_summary(waiting)] if waiting else [])])


def _summary(items: Iterable[ProgressItem]) -> str:
    """`2 running, 5 queued`."""
    return ", ".join(f"{number} {phase}" for phase, number in Counter(item.phase for item in items).most_common())
