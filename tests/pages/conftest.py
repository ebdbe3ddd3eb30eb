"""A running tracker with tasks in each state, and a browser, for a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import attrs
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from gctd.domain.analysis import PackageProblem
from tests.support.tracker.made_project import Project
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.web.browser import Profiles, Visitor, chromium
from tests.support.web.node import built_pages

REPO = "https://example.com/owner/shop"
FUNCTIONS = {"order.go:Order.Check": 132.0, "days.go:Days": 72.0, "pricing.go:Discount": 17.9, "order.go:Total": 4.0}


FIRST = MadeUp(
    commit_sha="1" * 40,
    functions={},
    measured={
        "order/order.go:Order.Check": (11, 0.0),
        "order/order.go:Total": (2, 100.0),
        "pricing/price.go:Discount": (11, 61.5),
        "pricing/price.go:Huge": (40, 100.0),
        "main.go:main": (3, 50.0),
    },
    uncovered=(PackageProblem(path="example.com/shop/web", reason="build failed: undefined: x"),),
)
SECOND = attrs.evolve(
    FIRST,
    commit_sha="2" * 40,
    go_version="go1.26.7",
    measured={**FIRST.measured, "order/order.go:Order.Check": (11, 90.0), "main.go:Added": (9, 0.0)},
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A browser without a profile, for all tests of the process."""
    async with chromium() as running:
        built_pages()
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def profiles(browser: Browser) -> AsyncIterator[Profiles]:
    """Profiles of the browser that the tests of a module share."""
    shared = Profiles(browser)
    yield shared
    await shared.close()


@attrs.frozen
class Dashboard:
    """A tracker and the browser that its tests look with."""

    system: TrackerSystem
    browser: Browser
    done: str
    """A task that has completed."""
    failed: str

    async def queued(self, project: str = ".") -> str:
        """The id of a new task, which no worker takes."""
        [task] = await self.system.post("/api/repos/analyze", {"repo_url": REPO, "project": project})
        return str(task["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dashboard(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Dashboard]:
    """Three projects that were analysed, one task that failed, a repository in error; the only worker is paused."""
    directory = tmp_path_factory.mktemp("dashboard")
    for ref, commit in (("main", "c" * 40), ("next", "d" * 40)):
        MadeUp(commit_sha=commit, functions=FUNCTIONS).write(directory / "analyses", ref)
    async with tracker_system(directory) as system:
        await system.start_worker(
            1, FAKE_PROJECTS="3", FAKE_SECONDS="0.02", FAKE_LINES="30", FAKE_ANALYSES=str(directory / "analyses")
        )
        await system.register(REPO)
        done = await system.post("/api/repos/analyze", {"repo_url": REPO})
        for task in done:
            await system.until_task(task["id"], "completed")
        await system.post("/api/repos", {"repo_url": "https://example.com/owner/broken"})
        await system.until_repo("https://example.com/owner/broken", "error")
        await system.post("/api/workers/worker-1/pause")
        await system.until_worker("worker-1", "paused")
        [failed] = await system.post("/api/repos/analyze", {"repo_url": REPO, "project": "p1"})
        await system.post(f"/api/tasks/{failed['id']}/cancel")
        yield Dashboard(system, browser, done[0]["id"], failed["id"])


@pytest_asyncio.fixture(loop_scope="session")
async def user(dashboard: Dashboard, profiles: Profiles) -> AsyncIterator[Visitor]:
    """Somebody who looks at the dashboard."""
    async with profiles.visitor(dashboard.system.url) as visitor:
        yield visitor


@attrs.frozen
class Measured:
    """A tracker with analyses whose functions lie in several packages, and the browser."""

    system: TrackerSystem
    browser: Browser
    project: Project
    """It has two analyses: of FIRST, and of SECOND with a coverage profile."""
    single: Project
    """It has one analysis, of FIRST."""

    async def address(self, rest: str = "") -> str:
        """A page of the project's analyses."""
        return f"/analyses/{await self.project.id}{rest}"

    async def repository(self) -> str:
        """The page of the project's repository."""
        repo = await self.system.get(f"/api/repos/status?url={self.project.url}")
        return f"/repos/{repo['ID']}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def measured(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Measured]:
    """Two repositories that were analysed, and a worker that is idle."""
    directory = tmp_path_factory.mktemp("measured")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        project = await Project.registered(system, directory / "analyses", "shop")
        await project.analyze(FIRST, attrs.evolve(SECOND, profile="mode: set\n"), ref="main")
        single = await Project.registered(system, directory / "analyses", "single")
        await single.analyze(FIRST)
        yield Measured(system, browser, project, single)


@pytest_asyncio.fixture(loop_scope="session")
async def reader(measured: Measured, profiles: Profiles) -> AsyncIterator[Visitor]:
    """A visitor of the measured system."""
    async with profiles.visitor(measured.system.url) as visitor:
        yield visitor
