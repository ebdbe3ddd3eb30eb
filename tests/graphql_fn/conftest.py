"""One running gateway for a module, and the runs of the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from graphql_fn.core.running.engine import run
from tests.support.web.graphql import Gateway, gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """The gateway with its defaults."""
    async with gateway(tmp_path_factory.mktemp("graphql")) as running:
        yield running


@pytest.fixture
def engine_runs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One item for each run of the engine."""
    runs: list[object] = []

    def counted(*given: Any) -> Any:
        runs.append(given)
        return run(*given)

    monkeypatch.setattr("graphql_fn.core.evaluator.run", counted)
    return runs
