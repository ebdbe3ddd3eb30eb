"""One running pantry for a module. Each test has a separate product."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from pantry.domain.ean13 import check_digit
from tests.support.pantry.system import PantrySystem, Server, pantry_system

_NUMBERS = itertools.count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A broker and one server, in a time zone that is not UTC."""
    async with pantry_system(tmp_path_factory.mktemp("pantry"), TZ="America/Asuncion") as system:
        yield system


@pytest.fixture
def server(running: PantrySystem) -> Server:
    """The server."""
    return running.one


@pytest.fixture
def new_code() -> Callable[[], str]:
    """Return a function that gives unused codes."""

    def make() -> str:
        first = f"{200000000000 + next(_NUMBERS)}"
        return f"{first}{check_digit(first)}"

    return make


@pytest.fixture
def code(new_code: Callable[[], str]) -> str:
    """An unused code."""
    return new_code()
