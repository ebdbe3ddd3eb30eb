"""A pytest plugin for the three tiers of tests, with a guard: no test of the first tier starts anything, in any run.

A test is `real` by its mark, or because a fixture of ROOTS is among its fixtures. A test that is neither `real` nor `long` is a
unit test: it may neither connect or bind a socket nor start a process.
`--unit` runs unit tests alone, `--long` long tests alone. A run with neither leaves out `long` tests, unless it names their file
or has `-m`. A file whose `pytestmark` excludes all its tests is not imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

ROOTS = frozenset(
    {"nats_server", "session_nats_server", "session_postgres_server", "postgres_server", "session_cluster", "browser"}
)
"""Fixtures that start a server or a browser."""
EVENTS = frozenset(
    {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}
    | {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"}
)
"""The audit events of Python that a unit test does not raise."""
_WHOLE = r"^pytestmark = (?:(?!\[).*|\[[^\]]*)\bpytest\.mark\.{}\b"
_ALL_REAL = re.compile(_WHOLE.format("(?:real|long)"), re.MULTILINE)
_ALL_LONG = re.compile(_WHOLE.format("long"), re.MULTILINE)


class Refused(RuntimeError):
    """A unit test tried to start something."""

    def __init__(self, event: str, detail: str) -> None:
        super().__init__(
            f"a unit test starts nothing, but this one raised {event}: {detail}\n"
            "hint: mark it with @pytest.mark.real, or replace the part that it starts"
        )


class Guard:
    """Refuses the EVENTS of this process while it listens. Python cannot remove an audit hook, so a process has one guard."""

    def __init__(self) -> None:
        self._refused: list[str] | None = None
        sys.addaudithook(self._hear)

    def watch(self, refused: list[str]) -> None:
        """Refuse events from now on, and append each to `refused`: the code under test may catch the exception."""
        self._refused = refused

    def rest(self) -> None:
        """Permit all events."""
        self._refused = None

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and self._refused is not None:
            error = Refused(event, " ".join(map(repr, arguments))[:200])
            self._refused.append(str(error))
            raise error


_GUARD = Guard()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--unit", action="store_true", help="run only the tests that start nothing")
    group.addoption("--long", action="store_true", help="run only the long tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.unit and config.option.long:
        raise pytest.UsageError("--unit and --long are two tiers: a test is in one of them")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file without tests of the tier: the collection of all files takes longer than all unit tests."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    if config.option.unit:
        return bool(_ALL_REAL.search(_text(collection_path))) or None
    if not config.option.long and not config.option.markexpr and collection_path not in _named(config):
        return bool(_ALL_LONG.search(_text(collection_path))) or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, and keep the tests of the tier."""
    for item in items:
        if isinstance(item, pytest.Function) and not ROOTS.isdisjoint(item.fixturenames):
            item.add_marker("real")
    keep = _choice(config)
    rejected = [item for item in items if not keep(item)]
    if rejected:
        config.hook.pytest_deselected(items=rejected)
        items[:] = [item for item in items if keep(item)]


def _choice(config: pytest.Config) -> Callable[[pytest.Item], bool]:
    """Return whether a run has a test."""
    if config.option.unit:
        return is_unit
    if config.option.long:
        return _is_long
    if config.option.markexpr:
        return lambda _: True
    named = _named(config)
    return lambda item: not _is_long(item) or item.path in named


def _named(config: pytest.Config) -> set[Path]:
    """The files that the run names."""
    return {config.invocation_params.dir / argument.partition("::")[0] for argument in config.args}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def is_unit(item: pytest.Item) -> bool:
    """Whether a test starts nothing."""
    return not _is_long(item) and item.get_closest_marker("real") is None


def _watched(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a phase of a unit test under the guard. Raises Refused also if the code under test has caught it."""
    if not is_unit(item):
        return (yield)
    refused: list[str] = []
    _GUARD.watch(refused)
    try:
        result = yield
    except Exception as error:
        if refused and not isinstance(error, Refused):
            raise pytest.fail.Exception(refused[0]) from error
        raise
    finally:
        _GUARD.rest()
    if refused:
        pytest.fail(refused[0], pytrace=False)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watch the fixtures. Their ends are not watched: a unit test may be the last of a module that has a server."""
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _watched(item))
