"""Time bounds of the tests, on a machine at rest and on a busy one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.pace import slowness, within
from tests.support.waiting import wait_until


@contextmanager
def busy(threads: int) -> Iterator[None]:
    """Threads of this process take its turns."""
    ended = threading.Event()

    def spin() -> None:
        while not ended.is_set():
            pass

    started = [threading.Thread(target=spin) for _ in range(threads)]
    for thread in started:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in started:
            thread.join()


def test_a_busy_machine_is_slower_than_one_at_rest() -> None:
    with busy(4):
        assert max(slowness() for _ in range(5)) > 2


def test_what_takes_longer_than_its_bound_fails_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.pace.slowness", lambda: 1.5)
    with pytest.raises(AssertionError, match=r"the bound is 0\.02 s at rest, 0\.03 s on this busy machine"), within(0.02):
        time.sleep(0.04)


def test_a_busy_machine_gets_as_many_times_longer_as_it_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.pace.slowness", lambda: 1000.0)
    with within(0.02):
        time.sleep(0.04)


async def test_waiting_for_a_condition_ends_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.waiting.slowness", lambda: 1.0)
    with pytest.raises(AssertionError, match=r"not true within 0\.02 s"):
        await wait_until(lambda: False, timeout=0.02)


async def test_waiting_goes_on_past_its_bound_while_the_machine_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.waiting.slowness", lambda: 1000.0)
    began = time.monotonic()
    await wait_until(lambda: time.monotonic() - began > 0.1, timeout=0.02)
