"""The order in which jobs get a place: fair between repositories, and first come first served within one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given as for_all
from hypothesis import strategies as st

from gctd.control.heartbeat import Heartbeat
from gctd.control.jobs import JobKind, JobTicket
from gctd.control.lanes.backlog import Group, JobBacklog, Key, QueuedJob, Way, key_of
from gctd.control.lanes.fleet import Everywhere, Fleet, Nowhere, Only
from gctd.domain.capabilities import Needs


def ticket(number: int, repo: str, *, fast: bool = False, needs: Needs = Needs()) -> JobTicket:  # noqa: B008 - frozen
    return JobTicket(JobKind.SCAN, f"task-{number}", str(number), b"", number, repo, fast, needs)


def taken(backlog: JobBacklog, count: int) -> list[int]:
    """The numbers of the next jobs, each put into a queue before the next is asked for."""
    found = []
    for _ in range(count):
        one = backlog.next(lambda _: True)
        if one is None:
            break
        found.append(one.sequence)
        backlog.put(key_of(one), QueuedJob(Group(one.fast, one.needs, one.repo), one, "", 0.0))
    return found


def test_a_repository_with_many_jobs_does_not_delay_another_one() -> None:
    backlog = JobBacklog()
    for number in range(1, 1001):
        backlog.offer(ticket(number, "monorepo"))
    backlog.offer(ticket(1001, "small"))
    backlog.offer(ticket(1002, "other"))
    assert taken(backlog, 6) == [1, 1001, 1002, 2, 3, 4]


@for_all(repos=st.lists(st.sampled_from("abcd"), max_size=40), window=st.integers(1, 6))
def test_no_repository_has_two_places_more_than_one_that_waits(repos: list[str], window: int) -> None:
    backlog = JobBacklog()
    for number, repo in enumerate(repos, 1):
        backlog.offer(ticket(number, repo))
    numbers = taken(backlog, window)
    assert len(numbers) == min(window, len(repos))
    places = {repo: sum(repos[number - 1] == repo for number in numbers) for repo in repos}
    waiting = {repo for number, repo in enumerate(repos, 1) if number not in numbers}
    assert all(places[repo] + 1 >= max(places.values()) for repo in waiting)
    for repo in "abcd":
        own = [number for number in numbers if repos[number - 1] == repo]
        assert own == sorted(own)


@for_all(st.data())
def test_the_next_job_is_the_first_of_all_by_places_and_age(data: st.DataObject) -> None:
    """Against a search in all groups, after each of many changes, on the ways that are open."""
    backlog, tickets, places = JobBacklog(), dict[Key, JobTicket](), dict[Key, JobTicket]()

    def expected(is_open: Callable[[Way], bool]) -> JobTicket | None:
        heads: dict[Group, JobTicket] = {}
        for one in tickets.values():
            heads.setdefault(Group(one.fast, one.needs, one.repo), one)
        load = Counter((one.fast, one.repo) for one in places.values())
        able = [(load[group.fast, group.repo], one.sequence, one) for group, one in heads.items() if is_open(group.way)]
        return min(able, key=lambda each: each[:2], default=(0, 0, None))[2]

    for number in range(1, data.draw(st.integers(1, 60)) + 1):
        change = data.draw(st.sampled_from(["offer", "offer", "place", "remove", "offer again"]))
        known = [*tickets, *places]
        if change == "offer" or not known:
            needs = Needs(go=data.draw(st.sampled_from(["", "1.26"])))
            one = ticket(number, data.draw(st.sampled_from("abc")), fast=data.draw(st.booleans()), needs=needs)
            tickets[key_of(one)] = one
            backlog.offer(one)
        elif change == "place":
            if (found := backlog.next(lambda _: True)) is not None:
                places[key_of(found)] = tickets.pop(key_of(found))
                backlog.put(key_of(found), QueuedJob(Group(found.fast, found.needs, found.repo), found, "", 0.0))
        else:
            key = data.draw(st.sampled_from(known))
            one = tickets.pop(key) if key in tickets else places.pop(key)
            backlog.remove(key)
            if change == "offer again":
                tickets[key] = one
                backlog.offer(one)
        for is_open in (lambda _: True, lambda way: way[0], lambda way: way == (False, Needs())):
            assert backlog.next(is_open) == expected(is_open)
        assert backlog.pending == len(tickets)


def test_a_place_is_looked_for_once_for_each_way_and_not_for_each_repository() -> None:
    backlog, asked = JobBacklog(), list[Way]()
    for number in range(1, 1001):
        backlog.offer(ticket(number, f"repo-{number}", fast=number % 2 == 0))

    def full(way: Way) -> bool:
        asked.append(way)
        return False

    assert backlog.next(full) is None
    assert sorted(fast for fast, _ in asked) == [False, True]


def test_memory_does_not_grow_with_changes() -> None:
    """Jobs come and go, and none is ever asked for."""
    backlog = JobBacklog()
    backlog.offer(ticket(1, "waits"))
    for number in range(2, 2000):
        backlog.offer(ticket(number, "monorepo"))
        backlog.remove(key_of(ticket(number, "monorepo")))
    assert sum(map(len, backlog._heaps.values())) < 100


BOTH = {
    "w1": Heartbeat(session="1", status="idle", engines={"native": "1"}, go_version="go1.26.1", concurrency=2, fast=1),
    "w2": Heartbeat(session="2", status="busy", engines={"native": "1", "native-compat": "1"}, go_version="go1.27.1", fast=1),
}


def test_a_job_goes_where_it_can_run() -> None:
    fleet = Fleet(BOTH)
    assert fleet.route(Needs(engine="native", go="1.26")) is Everywhere.SHARED
    assert fleet.route(Needs(engine="native-compat")) == Only(("w2",))
    assert fleet.route(Needs(engine="native", go="1.27")) == Only(("w2",))
    assert fleet.route(Needs(engine="native", go="1.28")) == Nowhere(
        "no worker has Go 1.28 or newer (the newest is go1.27.1)", blocked=True
    )
    assert fleet.window(fast=False) == 6


def test_a_paused_worker_gets_no_job_of_its_own() -> None:
    paused = Heartbeat(session="2", status="paused", engines={"native-compat": "1"})
    assert Fleet({**BOTH, "w2": paused}).route(Needs(engine="native-compat")) == Nowhere("held by w2: paused", blocked=False)
    assert Fleet({"w2": paused}).route(Needs(engine="native")) is Everywhere.SHARED
    assert Fleet().route(Needs(engine="native")) is Everywhere.SHARED


def test_short_jobs_go_the_way_of_scans_without_slots_for_them() -> None:
    old = Heartbeat(session="1", status="idle", engines={"native-compat": "1"})
    fleet = Fleet({**BOTH, "old": old})
    assert fleet.has_fast(Everywhere.SHARED)
    assert not fleet.has_fast(Only(("old",)))
    assert not Fleet({"old": old}).has_fast(Everywhere.SHARED)
    assert Fleet().has_fast(Everywhere.SHARED)
