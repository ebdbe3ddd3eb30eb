"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.fakeapi import FakeApi


@pytest_asyncio.fixture
async def api() -> AsyncIterator[FakeApi]:
    """A server of this test alone."""
    async with FakeApi() as server:
        yield server
