"""The given/when/then kit: accepted deciders, and each kind of decider that it has to catch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from eventlog.commit import Registry
from eventlog.decider import Decider
from eventlog.errors import NotStorable
from eventlog.testing.scenario import given

REGISTRY = Registry()
CATEGORY = "kit.jar"


@REGISTRY.event("filled")
@attrs.frozen
class Filled:
    amount: int


@REGISTRY.event("labelled")
@attrs.frozen
class Labelled:
    text: Any


@REGISTRY.state(CATEGORY)
@attrs.define
class Jar:
    """Not frozen, so that a decider can do wrong."""

    amount: int = 0
    label: Any = ""


class Overflow(Exception):
    pass


@attrs.frozen
class Fill:
    amount: int


def decide(command: Fill, state: Jar | None) -> Sequence[Filled]:
    amount = 0 if state is None else state.amount
    if amount + command.amount > 10:
        raise Overflow(f"only {10 - amount} fit")
    return [Filled(command.amount)] if command.amount else []


def evolve(state: Jar | None, event: Filled | Labelled) -> Jar:
    jar = state or Jar()
    if isinstance(event, Labelled):
        return Jar(jar.amount, event.text)
    return Jar(jar.amount + event.amount, jar.label)


JAR: Decider[Jar, Fill, Any] = Decider(CATEGORY, decide, evolve, initial=None)


def test_cases_are_one_line() -> None:
    given(JAR).when(Fill(3)).then(Filled(3))
    given(JAR, Filled(3), registry=REGISTRY).when(Fill(7)).then(Filled(7))
    given(JAR, Filled(3)).when(Fill(0)).then()
    given(JAR, Filled(3)).when(Fill(8)).then_refused(Overflow, match="only 7")
    assert given(JAR, Filled(3)).when(Fill(2)).then(Filled(2)) == Jar(5)


def test_other_events_than_expected_are_shown_beside_each_other() -> None:
    with pytest.raises(AssertionError, match=r"(?s)Fill\(amount=3\).*- Filled\(amount=4\)\n\+ Filled\(amount=3\)"):
        given(JAR).when(Fill(3)).then(Filled(4))
    with pytest.raises(AssertionError, match=r"(?s)  Filled\(amount=3\)\n- Filled\(amount=3\)\n\+ nothing"):
        given(JAR).when(Fill(3)).then(Filled(3), Filled(3))


def test_a_missing_or_another_refusal_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="was not refused"):
        given(JAR).when(Fill(3)).then_refused(Overflow)
    with pytest.raises(AssertionError, match="does not match"):
        given(JAR).when(Fill(11)).then_refused(Overflow, match="only 7")
    with pytest.raises(Overflow):
        given(JAR).when(Fill(11)).then_refused(KeyError)
    with pytest.raises(Overflow):
        given(JAR).when(Fill(11)).then(Filled(11))


def test_a_decider_that_is_not_the_same_twice_is_caught() -> None:
    numbers = itertools.count()
    fickle: Decider[Jar, Fill, Any] = Decider(CATEGORY, lambda _, __: [Filled(next(numbers))], evolve, initial=None)
    with pytest.raises(AssertionError, match="decide is not pure"):
        given(fickle).when(Fill(0)).then(Filled(0))


def test_a_decider_that_changes_the_state_is_caught() -> None:
    def meddle(command: Fill, state: Jar | None) -> Sequence[Filled]:
        if state is not None:
            state.amount = 0
        return decide(command, state)

    meddling: Decider[Jar, Fill, Any] = Decider(CATEGORY, meddle, evolve, initial=None)
    with pytest.raises(AssertionError, match="changed the state"):
        given(meddling, Filled(3)).when(Fill(1)).then(Filled(1))


def test_an_evolve_that_is_not_the_same_twice_is_caught() -> None:
    numbers = itertools.count()
    fickle: Decider[Jar, Fill, Any] = Decider(CATEGORY, decide, lambda _, __: Jar(next(numbers)), initial=None)
    with pytest.raises(AssertionError, match="evolve is not pure"):
        given(fickle, Filled(1)).when(Fill(0)).then()


def test_what_does_not_survive_being_stored_is_caught() -> None:
    """A tuple comes back as a list, in the history, in the decided events and in the state."""
    with pytest.raises(AssertionError, match=r"comes back as Labelled\(text=\['a'\]\)"):
        given(JAR, Labelled(("a",)), registry=REGISTRY).when(Fill(1)).then(Filled(1))
    lossy: Decider[Jar, Fill, Any] = Decider(
        CATEGORY, decide, lambda state, event: Jar(evolve(state, event).amount, ("a",)), initial=None
    )
    with pytest.raises(AssertionError, match=r"the state .* comes back as"):
        given(lossy, registry=REGISTRY).when(Fill(1)).then(Filled(1))


def test_an_event_that_is_not_registered_is_caught() -> None:
    strange: Decider[Jar, Fill, Any] = Decider(CATEGORY, lambda _, __: ["no event"], lambda _, __: Jar(), initial=None)
    with pytest.raises(ValueError, match="not registered"):
        given(strange, registry=REGISTRY).when(Fill(1)).then("no event")


@pytest.mark.parametrize("registry", [None, REGISTRY])
def test_an_evolve_without_a_case_for_an_event_is_caught(registry: Registry | None) -> None:
    silent: Decider[Any, Fill, Any] = Decider(CATEGORY, decide, lambda *_: None, initial=Jar())
    with pytest.raises(AssertionError, match=r"evolve gives None for Filled\(amount=1\): it has no case for Filled"):
        given(silent, registry=registry).when(Fill(1)).then(Filled(1))


def test_a_class_that_no_registry_has_is_caught_also_without_a_registry() -> None:
    strange: Decider[Jar, Fill, Any] = Decider(CATEGORY, lambda *_: [Fill(1)], lambda *_: Jar(), initial=None)
    with pytest.raises(NotStorable, match=r'event class Fill is not registered: put `@REGISTRY\.event\("Fill"\)` above it'):
        given(strange).when(Fill(1)).then(Fill(1))
    stateless: Decider[Any, Fill, Any] = Decider(CATEGORY, decide, lambda *_: "no state", initial=None)
    with pytest.raises(NotStorable, match="state class str is not registered"):
        given(stateless).when(Fill(1)).then(Filled(1))
