"""Questions about the state of the process, and the readiness made of them: no caller waits longer than the bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import attrs
import pytest

from httpkit.monitoring import BoundedQuestion, Health, Metrics, Unanswered
from tests.support.pace import within

BOUND = 0.05


@attrs.define
class SlowEnd:
    """A check that ends only when `may_end` is set, also after it is cancelled. It counts its calls and cancellations."""

    may_end: asyncio.Event = attrs.field(factory=asyncio.Event)
    calls: int = 0
    cancellations: int = 0
    error: Exception | None = None

    async def __call__(self) -> None:
        self.calls += 1
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.cancellations += 1
                if self.cancellations > 1:  # so that a test that fails ends
                    raise
        if self.error is not None:
            raise self.error


async def turn() -> None:
    """Let tasks that are ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_readiness_does_not_wait_for_the_end_of_a_check_that_it_cancels() -> None:
    check = SlowEnd()
    health = Health({"database": check}, bound=BOUND)
    with within(2):
        async with asyncio.timeout(4):
            assert await health.reason() == "database: no answer within 0.05 s"
    assert check.cancellations == 1
    check.may_end.set()


async def test_a_check_that_has_not_ended_is_not_asked_again_and_later_probes_are_answered_at_once() -> None:
    check = SlowEnd()
    health = Health({"database": check}, bound=BOUND)
    async with asyncio.timeout(4):
        for _ in range(3):
            assert str(await health.reason()).startswith("database: no answer")
    assert (check.calls, check.cancellations) == (1, 1)
    check.may_end.set()
    await turn()
    assert await health.reason() is None
    assert check.calls == 2


async def test_a_probe_tells_for_how_long_a_check_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    check = SlowEnd()
    health = Health({"database": check}, bound=BOUND)
    async with asyncio.timeout(4):
        await health.reason()
    loop = asyncio.get_running_loop()
    now = loop.time()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: now + 40)
        reason = await health.reason()
    assert reason == "database: no answer for 40 s"
    check.may_end.set()


async def test_probes_at_the_same_time_share_a_check() -> None:
    check = SlowEnd()
    question = BoundedQuestion(check, 60)
    askers = [asyncio.create_task(question.ask()) for _ in range(3)]
    await turn()
    askers[0].cancel()
    await turn()
    assert (check.calls, check.cancellations) == (1, 0)
    check.may_end.set()
    assert await asyncio.gather(*askers[1:]) == [None, None]


async def test_a_check_is_cancelled_if_all_its_callers_are_cancelled() -> None:
    check = SlowEnd()
    question = BoundedQuestion(check, 60)
    askers = [asyncio.create_task(question.ask()) for _ in range(2)]
    await turn()
    for asker in askers:
        asker.cancel()
    await asyncio.wait(askers)
    await turn()
    assert check.cancellations == 1
    check.may_end.set()


async def test_the_error_of_a_check_without_a_caller_is_retrieved() -> None:
    """Otherwise the event loop reports it."""
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    check = SlowEnd(error=RuntimeError("late"))
    with pytest.raises(Unanswered):
        await BoundedQuestion(check, BOUND).ask()
    check.may_end.set()
    await turn()
    assert reported == []


async def test_a_caller_that_asks_while_a_cancelled_check_ends_gets_its_own_answer() -> None:
    calls = 0

    async def check() -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.sleep(60)
        return calls

    question = BoundedQuestion(check, 60)
    leaver = asyncio.create_task(question.ask())
    await turn()
    leaver.cancel()
    await asyncio.wait({leaver})
    assert await question.ask() == 2


async def test_a_check_that_cancels_itself_has_no_answer() -> None:
    async def check() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Unanswered, match="cut off"):
        await BoundedQuestion(check, 60).ask()


async def test_figures_do_not_wait_for_the_end_of_a_look_up_that_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("httpkit.monitoring._PATIENCE", BOUND)
    figures = SlowEnd()
    metrics = Metrics()
    metrics.ask(figures)
    answer: Callable[..., Awaitable[object]] = metrics.answer
    with within(2):
        async with asyncio.timeout(4):
            await answer(None)
    assert figures.cancellations == 1
    figures.may_end.set()
