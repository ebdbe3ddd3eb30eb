"""The state of the passes of a scrubber over a log: the progress and the findings, which a process may keep for the next."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import attrs


@attrs.frozen
class Damage:
    """A finding: the sequence, the subject of the aggregate if it is known, and the problem in words.

    `elsewhere`: another server than the leader has the problem.
    """

    sequence: int
    subject: str | None
    problem: str
    elsewhere: bool = False

    def __str__(self) -> str:
        return f"sequence {self.sequence}{f', {self.subject}' if self.subject else ''}: {self.problem}"


@attrs.frozen(kw_only=True)
class ScrubPass:
    """A pass over a log: it has reached sequence `position` of `until`, and has `count` findings, of which `found` has the first.

    `ended` is None while it runs.
    """

    incarnation: str
    until: int
    started: datetime
    position: int = 0
    found: tuple[Damage, ...] = ()
    count: int = 0
    ended: datetime | None = None


@attrs.frozen
class ScrubState:
    """The passes over a log: the one that runs or ran last, and the last complete one."""

    current: ScrubPass | None
    complete: ScrubPass | None


class ScrubMemory(Protocol):
    """Keeps the state of the passes over one log while no process runs."""

    async def load(self) -> ScrubState | None:
        """The state that was kept last, or None. Raises an error if it cannot be read."""

    async def keep(self, state: ScrubState) -> None:
        """Keep a state. Raises an error if that is not possible now."""
