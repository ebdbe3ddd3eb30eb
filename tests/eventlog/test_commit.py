"""A look at the bytes of a commit never misses what decoding them would find."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import Commit, Context, NewCommit, NewEvent, Registry, UndecodableCommit
from tests.support.readside import ledger

events = st.one_of(
    st.builds(ledger.Opened, st.text(max_size=20)), st.builds(ledger.Booked, st.integers(-9, 9)), st.builds(ledger.Closed)
)
contexts = st.builds(Context, key=st.one_of(st.none(), st.text(min_size=1, max_size=20)))


@given(st.lists(st.builds(NewEvent, events, contexts), min_size=1, max_size=3))
def test_what_it_may_have_it_has_been_looked_at_for(given_events: list[NewEvent]) -> None:
    commit = NewCommit(id="1", at=datetime.now(UTC), events=tuple(given_events), state=ledger.Account(owner="a"))
    stored = Commit(1, "ledger.account.a", ledger.REGISTRY.encode(commit), ledger.REGISTRY)
    assert all(stored.may_have(event.type) for event in stored.body.events)
    assert stored.may_have_keys or all(event.key is None for event in stored.body.events)
    assert not stored.may_have("TaskCompleted")


def test_without_keys_there_is_nothing_to_look_for() -> None:
    commit = NewCommit(id="1", at=datetime.now(UTC), events=(NewEvent(ledger.Booked(1)),), state=ledger.Account(owner="a"))
    stored = Commit(1, "ledger.account.a", ledger.REGISTRY.encode(commit), ledger.REGISTRY)
    assert not stored.may_have_keys
    assert stored.state is stored.state


@pytest.mark.parametrize("body", [b"\xff", b"{}", b'{"id":"1","at":"2026-01-01T00:00:00Z","eve', b'{ "id": "1"}}'])
def test_what_is_no_commit_may_have_anything(body: bytes) -> None:
    """So that it is not taken for one without keys, but looked at, and found to be none."""
    commit = Commit(1, "ledger.account.a", body, ledger.REGISTRY)
    assert commit.may_have_keys
    assert commit.may_have("Opened")


def test_versions_that_only_lack_fields_with_defaults_are_read_as_they_are() -> None:
    registry = Registry()

    @registry.event("Moved", version=3, reads=[1, 2])
    @attrs.frozen
    class Moved:
        cents: int
        note: str = ""

    assert registry.decode("Moved", 1, b'{"cents":5}') == Moved(5)
    with pytest.raises(UndecodableCommit, match="this program knows Moved up to version 3: run the program that wrote it"):
        registry.decode("Moved", 4, b'{"cents":5}')
    with pytest.raises(ValueError, match="versions before 2"):
        registry.event("Other", version=2, reads=[2])(attrs.make_class("Other", []))


def test_an_upcaster_lifts_the_fields_of_an_old_version() -> None:
    registry = Registry()

    @registry.event("Moved", version=2)
    @attrs.frozen
    class Moved:
        cents: int

    with pytest.raises(UndecodableCommit, match="version 1 has no upcaster"):
        registry.decode("Moved", 1, b'{"amount":5}')
    registry.upcast("Moved", 1)(lambda fields: {"cents": fields["amount"]})
    assert registry.decode("Moved", 1, b'{"amount":5}') == Moved(5)


FAULTS = [KeyError("cents"), AttributeError("no cents"), IndexError("no cents"), ZeroDivisionError("by cents"), OSError("cents")]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_an_upcaster_that_fails_makes_its_commit_undecodable(fault: Exception) -> None:
    """With any error. The text names the event type and the error."""
    registry = Registry()
    registry.event("Moved", version=2)(attrs.make_class("Moved", {"cents": attrs.field(type=int)}, frozen=True))

    @registry.upcast("Moved", 1)
    def lift(_: dict[str, object]) -> dict[str, object]:
        raise fault

    stored = b'{"id":"1","at":"2026-01-01T00:00:00Z","events":[{"t":"Moved","d":{"amount":5}}],"state":{"d":{}}}'
    with pytest.raises(UndecodableCommit, match=r"sequence 7, event 'Moved' version 1: .*cents") as raised:
        _ = registry.commit(7, "bank.account.anna", stored).events
    assert raised.value.__cause__ is fault
