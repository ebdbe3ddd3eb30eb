"""The checker of histories accepts what one aggregate can answer, and refuses what none can."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log.linearizability import UNANSWERED, RecordedOperation, SequentialModel, broken, judge


def after(stock: int, call: tuple[str, int], answer: Any) -> Iterable[int]:
    """A stock: `take` is refused (None) below zero and answers with the rest, as `put` does. `read` answers the stock."""
    kind, amount = call
    if kind == "read":
        return [stock] if answer in (stock, UNANSWERED) else []
    left = stock + (amount if kind == "put" else -amount)
    if left < 0:
        return [stock] if answer in (None, UNANSWERED) else []
    return [left] if answer in (left, UNANSWERED) else []


STOCK: SequentialModel[int] = SequentialModel(0, after)

calls = st.tuples(st.sampled_from(["put", "take", "read"]), st.integers(1, 3))


def did(client: str, call: tuple[str, int], answer: Any, called: float, answered: float) -> RecordedOperation:
    return RecordedOperation(client=client, aggregate="flour", call=call, answer=answer, called=called, answered=answered)


def recorded(calls_: Sequence[tuple[str, int]], seed: int, *, unknown: float = 0.0) -> list[RecordedOperation]:
    """A history of a stock that does one thing at a time, at the moments 1, 2, …; the intervals around them overlap."""
    chance, stock, history = random.Random(seed), 0, []
    for moment, call in enumerate(calls_, start=1):
        effect = chance.random() >= unknown
        if not effect and chance.random() < 0.5:  # it never took effect, and the client cannot know
            history.append(did(f"c{moment}", call, UNANSWERED, moment - chance.uniform(0.1, 5), 0))
            continue
        left = stock + {"put": call[1], "take": -call[1], "read": 0}[call[0]]
        answer = None if left < 0 else left
        stock = max(left, stock) if left < 0 else left
        called, answered = moment - chance.uniform(0.1, 5), moment + chance.uniform(0.1, 5)
        history.append(did(f"c{moment}", call, answer if effect else UNANSWERED, called, answered))
    chance.shuffle(history)
    return history


def linearizable(history: Iterable[RecordedOperation]) -> bool:
    return not broken(judge(history, STOCK))


@given(st.lists(calls, max_size=40), st.integers(0, 2**32))
def test_a_history_of_one_at_a_time_is_accepted_however_the_calls_overlap(calls_: list[tuple[str, int]], seed: int) -> None:
    assert linearizable(recorded(calls_, seed))


@given(st.lists(calls, max_size=30), st.integers(0, 2**32))
def test_unknown_outcomes_are_accepted_whether_they_took_effect_or_not(calls_: list[tuple[str, int]], seed: int) -> None:
    assert linearizable(recorded(calls_, seed, unknown=0.1))


@given(st.lists(calls, min_size=1, max_size=30), st.data())
def test_a_sequential_history_with_one_wrong_answer_is_refused(calls_: list[tuple[str, int]], data: st.DataObject) -> None:
    """Without overlaps there is one order only, so every other answer is wrong."""
    history = sorted(recorded(calls_, seed=1), key=lambda operation: int(operation.client[1:]))
    history = [attrs.evolve(one, called=float(n), answered=n + 0.5) for n, one in enumerate(history)]
    assert linearizable(history)
    place = data.draw(st.integers(0, len(history) - 1))
    wrong = data.draw(st.one_of(st.none(), st.integers(0, 100)).filter(lambda answer: answer != history[place].answer))
    history[place] = attrs.evolve(history[place], answer=wrong)
    assert not linearizable(history)


@given(st.lists(calls, max_size=7), st.integers(0, 2**32), st.data())
def test_it_judges_small_histories_as_trying_all_orders_does(
    calls_: list[tuple[str, int]], seed: int, data: st.DataObject
) -> None:
    history = recorded(calls_, seed, unknown=0.2)
    place = data.draw(st.integers(-1, len(history) - 1))
    if place >= 0:
        history[place] = attrs.evolve(history[place], answer=data.draw(st.one_of(st.none(), st.integers(0, 6))))
        history[place] = attrs.evolve(history[place], answered=max(history[place].answered, history[place].called))
    assert linearizable(history) == _some_order(history, 0)


def _some_order(left: Sequence[RecordedOperation], stock: int) -> bool:
    known = [one for one in left if one.known]
    if not known:
        return True
    end = min(one.answered for one in known)
    return any(
        _some_order([other for other in left if other is not one], then)
        for one in left
        if one.called <= end
        for then in after(stock, one.call, one.answer)
    )


def test_a_stale_read_after_an_answered_write_is_refused_and_shown() -> None:
    history = [did("a", ("put", 5), 5, 0, 1), did("b", ("read", 1), 5, 2, 3), did("c", ("read", 1), 0, 4, 5)]
    (verdict,) = broken(judge(history, STOCK))
    assert verdict.linearizable is False
    assert [one.client for one in verdict.stuck] == ["c"]
    assert "c [4, 5] ('read', 1) -> 0" in str(verdict)


def test_a_read_during_the_write_may_see_it_or_not() -> None:
    write = did("a", ("put", 5), 5, 0, 10)
    assert linearizable([write, did("b", ("read", 1), 0, 1, 2), did("b", ("read", 1), 5, 3, 4)])
    assert not linearizable([write, did("b", ("read", 1), 5, 1, 2), did("b", ("read", 1), 0, 3, 4)])


def test_a_write_without_an_answer_takes_effect_late_once_or_never() -> None:
    lost = did("a", ("put", 5), UNANSWERED, 0, 0)
    assert linearizable([lost, did("b", ("read", 1), 0, 50, 51)])
    assert linearizable([lost, did("b", ("read", 1), 0, 50, 51), did("b", ("read", 1), 5, 60, 61)])
    assert not linearizable([lost, did("b", ("read", 1), 10, 50, 51)])
    assert not linearizable([lost, did("b", ("read", 1), 5, 50, 51), did("b", ("read", 1), 0, 60, 61)])
    assert not linearizable([attrs.evolve(lost, called=55), did("b", ("read", 1), 5, 50, 51)])


def test_one_key_that_took_effect_twice_is_refused() -> None:
    assert not linearizable([did("a", ("put", 5), 5, 0, 9), did("b", ("read", 1), 10, 10, 11)])


def test_aggregates_are_judged_apart() -> None:
    good, bad = did("a", ("read", 1), 0, 0, 1), did("a", ("read", 1), 7, 0, 1)
    verdicts = judge([good, attrs.evolve(bad, aggregate="milk")], STOCK)
    assert [(verdict.aggregate, verdict.linearizable) for verdict in verdicts] == [("flour", True), ("milk", False)]


def test_a_search_that_is_too_long_says_so_and_claims_nothing() -> None:
    history = [did(f"c{n}", ("put", 1), UNANSWERED, 0, 0) for n in range(30)] + [did("r", ("read", 1), 99, 0, 1)]
    (verdict,) = judge(history, STOCK, most=10)
    assert verdict.linearizable is None
    assert "not decided" in str(verdict)
    assert broken([verdict])


@pytest.mark.parametrize("overlap", [2.0, 8.0])
def test_long_histories_are_judged_quickly(overlap: float) -> None:
    """A long history of 2,000 operations looks at few situations more than it has operations."""
    chance, stock, history = random.Random(7), 0, []
    for moment in range(2000):
        amount = chance.randint(-3, 4)
        if stock + amount >= 0:
            stock += amount
            call = ("put", amount) if amount > 0 else ("take", -amount)
            span = chance.uniform(0.1, overlap)
            history.append(did(f"c{moment % 8}", call, stock, moment - span / 2, moment + span / 2))
    (verdict,) = judge(history, STOCK)
    assert verdict.linearizable
    assert verdict.situations < 10 * len(history)
