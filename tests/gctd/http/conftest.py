"""A tracker for a module of tests, whose analyses the tests write down, and a registered project for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.tracker.made_project import Project
from tests.support.tracker.system import TrackerSystem, tracker_system


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[TrackerSystem, Path]]:
    """The tracker, and the directory of the analyses that its worker reports."""
    directory = tmp_path_factory.mktemp("shared")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        yield system, directory / "analyses"


@pytest_asyncio.fixture(loop_scope="module")
async def project(shared: tuple[TrackerSystem, Path]) -> Project:
    """A project of the tracker that no other test has."""
    return await Project.registered(*shared)
