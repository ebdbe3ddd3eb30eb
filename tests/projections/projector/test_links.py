"""A commit that does not name the commit before it of its aggregate is found."""

from __future__ import annotations

import msgspec
import pytest

from eventlog import Commit
from eventlog.support.chain import TOMBSTONE, CommitLost, fingerprints, link, links
from projections.projector import continuity as module
from projections.projector.continuity import AggregateLinks
from tests.support.readside.ledger import REGISTRY

AT = "2026-01-02T03:04:05Z"


def written(sequence: int, name: str, prev: str | None, *, id_: str = "", event: object = None) -> Commit:
    """A commit as `Registry.encode` writes it."""
    named = {} if prev is None else {"prev": prev}
    body = {"id": id_ or f"id-{sequence}", "at": AT, **named, "events": [{"t": "opened", "d": event}], "state": {"d": None}}
    return REGISTRY.commit(sequence, f"ledger.account.{name}", msgspec.json.encode(body))


def foreign(sequence: int, name: str, prev: str | None) -> Commit:
    """The same members in another order."""
    body: dict[str, object] = {"prev": prev, "state": {"d": None}, "events": [], "at": AT, "id": f"id-{sequence}"}
    return REGISTRY.commit(sequence, f"ledger.account.{name}", msgspec.json.encode(body))


def looked(known: AggregateLinks, *commits: Commit) -> tuple[list[int], list[int]]:
    """The sequences of the commits that do not follow, and of those whose predecessor is not known."""
    found = known.look(commits, fingerprints(commits))
    return list(found.broken), [commit.sequence for commit in found.unknown]


def test_the_digests_of_many_are_the_digest_of_each() -> None:
    commits = [written(number, f"{number % 7}", None) for number in range(1, 200)]
    assert [digest.decode() for digest in links(fingerprints(commits))] == [link(one.subject, one.data) for one in commits]
    assert list(links([])) == []


def test_a_commit_that_names_another_one_is_found_and_the_next_one_is_compared_with_it() -> None:
    first = written(1, "a", None)
    other = written(2, "b", None)
    second = written(3, "a", other.digest)
    third = written(4, "a", second.digest)
    known = AggregateLinks()
    assert looked(known, first, other, second, third) == ([3], [])
    fourth = written(5, "a", third.digest[:-1] + ("A" if third.digest[-1] != "A" else "Q"))
    assert looked(known, fourth) == ([5], [])
    assert looked(known, written(6, "a", ""), written(7, "b", other.digest + "A")) == ([6, 7], [])


def test_a_commit_whose_predecessor_was_not_read_is_unknown() -> None:
    first = written(1, "a", None)
    second = written(2, "a", first.digest)
    known = AggregateLinks()
    assert looked(known, second) == ([], [2])
    assert looked(known, written(3, "a", second.digest)) == ([], [])
    known.begin()
    assert looked(known, written(4, "a", second.digest)) == ([], [4])


@pytest.mark.parametrize("replaces", [None, "q83vEjRWeJCrze8SNFZ4kA", "not a digest"])
def test_a_tombstone_stands_for_the_commit_that_it_replaces(replaces: str | None) -> None:
    event = CommitLost(sequence=2, operator="ann", reason="a bad disk", replaces=replaces)
    first = written(1, "a", None)
    tombstone = written(2, "a", first.digest, id_="lost-2", event=event)
    assert tombstone.data.startswith(TOMBSTONE)
    assert looked(AggregateLinks(), first, tombstone, written(3, "a", tombstone.digest)) == ([], [])
    assert tombstone.digest == (replaces or link(tombstone.subject, tombstone.data))
    assert looked(AggregateLinks(), first, written(2, "a", "q83vEjRWeJCrze8SNFZ4kA", id_="lost-2", event=event)) == ([2], [])


def test_commits_that_are_written_in_another_way_are_compared_too() -> None:
    first = foreign(1, "a", None)
    second = foreign(2, "a", first.digest)
    known = AggregateLinks()
    assert looked(known, first, second, written(3, "a", second.digest)) == ([], [])
    assert looked(known, foreign(4, "a", first.digest)) == ([4], [])
    assert looked(known, REGISTRY.commit(5, first.subject, b"{"), written(6, "a", first.digest)) == ([6], [])


def test_the_aggregates_that_were_read_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    a, b, c = (written(sequence, name, None) for sequence, name in enumerate("abc", 1))
    again = written(4, "a", a.digest)
    known = AggregateLinks()
    assert looked(known, a, b, c, again) == ([], [])
    assert looked(known, written(5, "b", b.digest)) == ([], [5])  # so c is the oldest one
    assert looked(known, written(6, "a", again.digest), written(7, "c", c.digest)) == ([], [7])
