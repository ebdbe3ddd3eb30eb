"""The order in which jobs get a place: fair between repositories, and first come first served within one."""

from __future__ import annotations

from hypothesis import given as for_all
from hypothesis import strategies as st

from gctd.control.heartbeat import Heartbeat
from gctd.control.jobs import JobKind, JobTicket
from gctd.control.lanes.backlog import Backlog, Group, QueuedJob, key_of
from gctd.control.lanes.fleet import Everywhere, Fleet, Nowhere, Only
from gctd.domain.capabilities import Needs


def ticket(number: int, repo: str, *, fast: bool = False, needs: Needs = Needs()) -> JobTicket:  # noqa: B008 - frozen
    return JobTicket(JobKind.SCAN, f"task-{number}", str(number), b"", number, repo, fast, needs)


def taken(backlog: Backlog, count: int) -> list[int]:
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
    backlog = Backlog()
    for number in range(1, 1001):
        backlog.offer(ticket(number, "monorepo"))
    backlog.offer(ticket(1001, "small"))
    backlog.offer(ticket(1002, "other"))
    assert taken(backlog, 6) == [1, 1001, 1002, 2, 3, 4]


@for_all(repos=st.lists(st.sampled_from("abcd"), max_size=40), window=st.integers(1, 6))
def test_no_repository_has_two_places_more_than_one_that_waits(repos: list[str], window: int) -> None:
    backlog = Backlog()
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


BOTH = {
    "w1": Heartbeat(session="1", status="idle", engines={"native": "1"}, go_version="go1.26.1", concurrency=2, fast=1),
    "w2": Heartbeat(session="2", status="busy", engines={"native": "1", "go-crap": "1"}, go_version="go1.27.1", fast=1),
}


def test_a_job_goes_where_it_can_run() -> None:
    fleet = Fleet(BOTH)
    assert fleet.route(Needs(engine="native", go="1.26")) is Everywhere.SHARED
    assert fleet.route(Needs(engine="go-crap")) == Only(("w2",))
    assert fleet.route(Needs(engine="native", go="1.27")) == Only(("w2",))
    assert fleet.route(Needs(engine="native", go="1.28")) == Nowhere(
        "no worker has Go 1.28 or newer (the newest is go1.27.1)", blocked=True
    )
    assert fleet.window(fast=False) == 6


def test_a_paused_worker_gets_no_job_of_its_own() -> None:
    paused = Heartbeat(session="2", status="paused", engines={"go-crap": "1"})
    assert Fleet({**BOTH, "w2": paused}).route(Needs(engine="go-crap")) == Nowhere("paused: w2", blocked=False)
    assert Fleet({"w2": paused}).route(Needs(engine="native")) is Everywhere.SHARED
    assert Fleet().route(Needs(engine="native")) is Everywhere.SHARED


def test_short_jobs_go_the_way_of_scans_without_slots_for_them() -> None:
    old = Heartbeat(session="1", status="idle", engines={"go-crap": "1"})
    fleet = Fleet({**BOTH, "old": old})
    assert fleet.has_fast(Everywhere.SHARED)
    assert not fleet.has_fast(Only(("old",)))
    assert not Fleet({"old": old}).has_fast(Everywhere.SHARED)
    assert Fleet().has_fast(Everywhere.SHARED)
