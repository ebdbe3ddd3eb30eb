"""A project on a running system, whose analyses a test writes down."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import attrs

from gctd.domain.analysis import analysis_id
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem

_NUMBERS = count(1)


@attrs.frozen
class Project:
    """A separate project, and the tasks that were run on it, in order."""

    system: TrackerSystem
    directory: Path
    url: str
    tasks: list[str] = attrs.field(factory=list)

    @classmethod
    async def registered(cls, system: TrackerSystem, directory: Path, name: str = "") -> Project:
        """A new one; the worker of the system finds its analyses in this directory (FAKE_ANALYSES)."""
        url = f"https://example.com/{directory.parent.name}/{name or next(_NUMBERS)}"
        await system.register(url)
        return cls(system, directory, url)

    async def analyze(self, *analyses: MadeUp, ref: str | None = None) -> None:
        """Let the worker report these, one after the other, each on a new ref or all on the same one."""
        for analysis in analyses:
            name = ref or f"ref-{next(_NUMBERS)}"
            analysis.write(self.directory, name)
            (task,) = await self.system.post("/api/repos/analyze", {"repo_url": self.url, "ref": name})
            await self.system.until_task(task["id"], "completed")
            self.tasks.append(task["id"])

    @property
    async def id(self) -> str:
        """The id of its analyses."""
        repo = await self.system.get(f"/api/repos/status?url={self.url}")
        return analysis_id(repo["ID"], ".")

    @property
    async def path(self) -> str:
        """Where its analyses are."""
        return f"/api/repos/{await self.id}"
