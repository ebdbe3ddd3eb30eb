"""One running gateway for a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.web.graphql import Gateway, gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """The gateway with its defaults."""
    async with gateway(tmp_path_factory.mktemp("graphql")) as running:
        yield running
