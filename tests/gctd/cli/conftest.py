"""Fixtures of the command line's tests."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from gctd.cli import main
from gctd.settings import Settings
from httpkit.messages.fields import attributes_of
from tests.support.programs.cli import Result
from tests.support.tracker.fake_api import FakeApi

Here = Callable[..., Result]


@pytest_asyncio.fixture
async def api() -> AsyncIterator[FakeApi]:
    """A server of this test alone."""
    async with FakeApi() as server:
        yield server


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only the settings of the test; a private home and working directory, `home` and `here`."""
    for attribute in attributes_of(Settings):
        monkeypatch.delenv(f"GCTD_{attribute.name.upper()}", raising=False)
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def here(bare: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Here]:
    """Run the program in this process. This is faster, if a test needs neither a server nor signals."""
    del bare
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str) -> Result:
        code = main(arguments)
        written = capsys.readouterr()
        return Result(code, written.out, written.err)

    yield run
    signal.signal(signal.SIGTERM, before)
