"""A commit that does not name the commit before it of its aggregate is found."""

from __future__ import annotations

import msgspec
import pytest

from eventlog import Commit
from eventlog.support import chain
from eventlog.support.chain import Break, CommitLost, LinkChecker, fingerprints, link, link_faults, links
from tests.support.log.linked import foreign, sound, written
from tests.support.readside.ledger import REGISTRY

SUBJECT = "ledger.account.a"


def looked(known: LinkChecker, *commits: Commit) -> tuple[dict[int, Break], list[int]]:
    """The sequences of the commits that do not follow, and of those whose predecessor is not known."""
    found = known.look(commits, fingerprints(commits))
    return {sequence: fault.kind for sequence, fault in found.faults.items()}, [commit.sequence for commit in found.unread]


def test_the_digests_of_many_are_the_digest_of_each() -> None:
    commits = [written(number, f"{number % 7}", None) for number in range(1, 200)]
    assert [digest.decode() for digest in links(fingerprints(commits))] == [link(one.subject, one.data) for one in commits]
    assert list(links([])) == []


def test_a_commit_that_names_another_one_is_found_and_the_next_one_is_compared_with_it() -> None:
    first, other = written(1, "a", None), written(2, "b", None)
    second = written(3, "a", other, guard=1)
    third = written(4, "a", second)
    known = LinkChecker()
    assert looked(known, first, other, second, third) == ({3: Break.DIGEST}, [])
    changed = third.digest[:-1] + ("A" if third.digest[-1] != "A" else "Q")
    assert looked(known, written(5, "a", changed, guard=4)) == ({5: Break.DIGEST}, [])
    assert looked(known, written(6, "a", "", guard=5)) == ({6: Break.DIGEST}, [])


async def test_a_commit_whose_predecessor_was_not_read_is_compared_with_the_record_in_the_log() -> None:
    first, other = written(1, "a", None), written(2, "b", None)
    second, third = written(3, "a", first), written(4, "a", other)
    log = {one.sequence: one for one in (first, other, second, third)}

    async def at(sequence: int) -> Commit | None:
        return log.get(sequence)

    known = LinkChecker()
    assert looked(known, second) == ({}, [3])
    assert await link_faults(known.look([], []), at) == {}
    known.begin()
    check = known.look([second], fingerprints([second]))
    assert await link_faults(check, at) == {}
    known.begin()
    faults = await link_faults(known.look([third], fingerprints([third])), at)  # b's commit is at its guard
    assert {sequence: fault.kind for sequence, fault in faults.items()} == {4: Break.GUARD}
    log.clear()
    assert await link_faults(check, at) == {}  # the commit before it is damaged itself


@pytest.mark.parametrize("replaces", [None, "q83vEjRWeJCrze8SNFZ4kA", "not a digest"])
def test_a_tombstone_stands_for_the_commit_that_it_replaces(replaces: str | None) -> None:
    event = CommitLost(sequence=2, operator="ann", reason="a bad disk", replaces=replaces)
    first = written(1, "a", None)
    tombstone = written(2, "a", first, id_="lost-2", event=event)
    assert tombstone.lost is not None
    assert looked(LinkChecker(), first, tombstone, written(3, "a", tombstone)) == ({}, [])
    assert tombstone.digest == (replaces or link(tombstone.subject, tombstone.data))
    other = written(2, "a", "q83vEjRWeJCrze8SNFZ4kA", guard=1, id_="lost-2", event=event)
    assert looked(LinkChecker(), first, other) == ({2: Break.DIGEST}, [])


def test_commits_that_are_written_in_another_way_are_compared_too() -> None:
    first = foreign(1, "a", None)
    second = foreign(2, "a", first)
    known = LinkChecker()
    assert looked(known, first, second, written(3, "a", second)) == ({}, [])
    assert looked(known, foreign(4, "a", first, guard=3)) == ({4: Break.DIGEST}, [])
    bad = REGISTRY.commit(5, SUBJECT, b"{", written(5, "a", second, guard=4).headers)
    assert looked(known, bad, written(6, "a", first, guard=5)) == ({5: Break.UNDECODABLE, 6: Break.DIGEST}, [])


def test_the_aggregates_that_were_read_longest_ago_are_forgotten() -> None:
    a, b, c = (written(sequence, name, None) for sequence, name in enumerate("abc", 1))
    again = written(4, "a", a)
    known = LinkChecker(2)
    assert looked(known, a, b, c, again) == ({}, [])
    assert looked(known, written(5, "b", b)) == ({}, [5])  # so c is the oldest one
    assert looked(known, written(6, "a", again), written(7, "c", c)) == ({}, [7])


def test_a_sound_log_is_read_by_its_outline_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding is slower by a factor of ten."""
    monkeypatch.setattr(chain, "_body", msgspec.json.Decoder(int))
    commits = sound(50)
    assert looked(LinkChecker(), *commits) == ({}, [])
