"""Answers of the tracker are of one moment of its tables, and name the sequence of that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from gctd.control.comparing.baselines import Baseline
from gctd.http.projects.points import read_with_base
from gctd.readmodel.views import AnalysisView
from gctd.serve import SERVICE
from gctd.settings import Settings
from projections.queries import SnapshotQueries

_REGISTERED = "/api/repos/registered"


class Register:
    """Registers repositories: directly, and once before the next query of a handler."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.sequences: dict[str, int] = {}
        self._http = http
        self._due = False

    async def __call__(self) -> None:
        url = f"https://github.com/example/module-{len(self.sequences)}"
        async with self._http.post("/api/repos", json={"repo_url": url}) as answer:
            assert answer.status == 202
            self.sequences[url] = int(answer.headers["Event-Sequence"])

    def before_next_query(self, patch: pytest.MonkeyPatch) -> None:
        """Let the tables take a registration after a handler is called and before its first query."""
        self._due = True
        for name in "fetch", "fetch_one", "fetch_in_thread":
            patch.setattr(SnapshotQueries, name, self._delayed(getattr(SnapshotQueries, name)))

    def _delayed(self, query: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def delayed(*arguments: Any) -> Any:
            if self._due:
                self._due = False
                await self()
            return await query(*arguments)

        return delayed


@pytest.mark.real
async def test_an_answer_is_of_the_moment_that_it_names_also_if_the_tables_go_on_before_its_query(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(port=0, nats_url=nats_url, database_url=f"sqlite:{tmp_path / 'gctd.db'}", cache_directory=tmp_path)
    async with SERVICE.listening(settings) as address, aiohttp.ClientSession(address.url) as http:
        register = Register(http)
        await register()
        register.before_next_query(monkeypatch)
        for shown in 1, 2:
            async with http.get(_REGISTERED) as answer:
                urls, sequence = {repo["URL"] for repo in await answer.json()}, int(answer.headers["Event-Sequence"])
            assert len(register.sequences) == 2
            assert urls == {url for url, registered in register.sequences.items() if registered <= sequence}
            assert len(urls) == shown
        last = max(register.sequences.values())
        for path in f"/api/log?to={last}", f"/api/log/state?aggregate=gctd.repo.{await _id(http)}":
            async with http.get(path) as answer:
                document = await answer.json()
            assert int(answer.headers["Event-Sequence"]) >= max(
                document.get("sequence", 0), *(event["sequence"] for event in document["events"])
            )


async def _id(http: aiohttp.ClientSession) -> str:
    async with http.get(_REGISTERED) as answer:
        return str((await answer.json())[0]["ID"])


class Remote:
    """Tables, and a remote repository. During each question to it another commit becomes the latest, up to the last one."""

    def __init__(self, *commits: str) -> None:
        self._commits = commits
        self._sequence = 0
        self.inside = False
        self.asked: list[str] = []

    @property
    def commit(self) -> str:
        return self._commits[self._sequence]

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[int]:
        self.inside = True
        yield self._sequence
        self.inside = False

    async def choose(self, after: AnalysisView, base: str) -> Baseline:
        assert not self.inside, "a connection to the database would be held"
        self.asked.append(after.commit_sha)
        self._sequence = min(self._sequence + 1, len(self._commits) - 1)
        return Baseline(commit=f"{base} of {after.commit_sha}")


@pytest.mark.parametrize(
    ("commits", "asked", "result"),
    [("aa", ["a"], ("main of a", 1)), ("ab", ["a", "b"], ("main of b", 1)), ("aba", ["a", "b"], ("main of a", 2))],
)
async def test_an_answer_that_needs_a_remote_repository_is_of_one_moment_after_the_question(
    commits: str, asked: list[str], result: tuple[str, int]
) -> None:
    remote = Remote(*commits)
    call = cast("Any", SimpleNamespace(services=SimpleNamespace(snapshots=remote, baselines=remote)))

    async def read(chosen: Mapping[str, Baseline]) -> tuple[AnalysisView, str | None]:
        base = chosen.get(remote.commit)
        return cast("AnalysisView", SimpleNamespace(commit_sha=remote.commit)), None if base is None else base.commit

    assert await read_with_base(read, "main", call) == result
    assert remote.asked == asked
