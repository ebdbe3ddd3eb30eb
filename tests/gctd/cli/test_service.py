"""`gctd serve` and `gctd worker` as the command line has them: settings in, readiness said, failures with their exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

import pytest

from eventlog.errors import Unavailable
from gctd.domain.errors import BadInput, Refused
from gctd.settings import Settings
from httpkit.server.serving import ListenAddress
from projections.errors import MigrationError
from terminalkit import logs
from tests.gctd.cli.conftest import Here

Program = Callable[..., Coroutine[Any, Any, None]]


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """How logging was set up; the tests' own set-up stays as it is."""
    calls: list[dict[str, str]] = []
    monkeypatch.setattr(logs, "configure_logs", lambda **given: calls.append(given))
    return calls


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, name: str, program: Program) -> None:
    """Put another program in the place of the real one. NATS has a chosen address, which no command looks at."""
    monkeypatch.setenv("GCTD_NATS_URL", "nats://127.0.0.1:1")
    fake = ModuleType(module)
    setattr(fake, name, program)
    monkeypatch.setitem(sys.modules, module, fake)


def test_serve_says_where_it_listens_and_has_the_settings(
    here: Here, monkeypatch: pytest.MonkeyPatch, configured: list[dict[str, str]]
) -> None:
    seen: list[Settings] = []

    async def serve(settings: Settings, *, on_ready: Callable[[ListenAddress], None]) -> None:
        seen.append(settings)
        on_ready(ListenAddress(settings.host, 4711))

    stand_in(monkeypatch, "gctd.serve", "serve", serve)
    reading, writing = os.pipe()
    monkeypatch.setenv("GCTD_HOST", "127.0.0.2")
    result = here(
        *("serve", "--port", "0", "--allow-local", "--no-allow-ssh", "--presence-ttl", "3s", "--allowed-hosts", "a"),
        *("--allowed-hosts", "b", "--ready-fd", str(writing), "--log-level", "debug", "--event-store-max-bytes", "20GiB"),
    )
    assert (result.code, result.out, result.err) == (0, "listening on http://127.0.0.2:4711\n", "")
    with os.fdopen(reading) as ready:
        assert ready.read() == "http://127.0.0.2:4711\n"
    [settings] = seen
    assert (settings.host, settings.port, settings.allow_local, settings.allow_ssh) == ("127.0.0.2", 0, True, False)
    assert (settings.presence_ttl, settings.allowed_hosts, settings.event_store_max_bytes) == (3.0, ("a", "b"), "20GiB")
    assert configured == [{"level": "debug", "style": "json"}]


def test_worker_alone_runs_a_worker(here: Here, monkeypatch: pytest.MonkeyPatch, configured: list[dict[str, str]]) -> None:
    seen: list[Settings] = []

    async def work(settings: Settings, *, once: bool) -> None:
        assert not once
        seen.append(settings)

    stand_in(monkeypatch, "gctd.worker.main", "work", work)
    result = here("worker", "--id", "build-7", "--concurrency", "4", "--log-format", "text")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (seen[0].worker_id, seen[0].concurrency) == ("build-7", 4)
    assert configured == [{"level": "info", "style": "text"}]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Unavailable("no broker at nats://x"), 6, "no broker at nats://x"),
        (MigrationError("the schema is dirty"), 5, "the schema is dirty"),
        (Refused("a worker with the id w is running already"), 5, "running already"),
        (BadInput("private_hosts", "not a host"), 2, "private_hosts: not a host"),
        (OSError(errno.EADDRINUSE, "port 80 is in use"), 1, "port 80 is in use"),
        (OSError(errno.EACCES, "denied", "/x"), 1, "/x: denied"),
        (RuntimeError("odd"), 1, "internal error, a defect of the program: RuntimeError('odd')"),
    ],
)
@pytest.mark.usefixtures("configured")
def test_a_program_that_cannot_run_ends_with_the_code_for_it(
    here: Here, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    async def work(settings: Settings, *, once: bool) -> None:
        assert not once
        raise error

    stand_in(monkeypatch, "gctd.worker.main", "work", work)
    result = here("worker")
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: worker: ")
    assert said in result.err
