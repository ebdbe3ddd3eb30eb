"""The alert rules: each fires on series that show its trouble, after its time, and is quiet on series that do not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import yaml

from tests.support import ROOT
from tests.support.promql import evaluate, fires, minutes, parsed

RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/gctd.rules.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}


class Example(NamedTuple):
    """Series with the trouble, and series that come close to it."""

    trouble: str
    quiet: str


IDLE = 'tasks{status="queued"}  4x40\nworkers{status="idle"}  1x40\nqueue_jobs{state="pending"}  0x40'
"""Tasks that could be dispatched: a worker is idle, and no job waits for it."""

EXAMPLES = {
    "ProjectorStopped": Example("projection_stopped  0x3 1x9", "projection_stopped  1 0x20"),
    "ReadModelBehind": Example("projection_lag_seconds  31x9", "projection_lag_seconds  31x3 5x9\nprojection_lag_events  0x20"),
    "AggregatesParked": Example("projection_parked  0x3 1", "projection_parked  0x20"),
    "BrokerAway": Example(
        'broker_connected  1x20\nbroker_connected{instance="two"}  0x9',
        'broker_connected  1x20\nbroker_connected{instance="two"}  0 1x9',
    ),
    "LeaderCount": Example(
        'projection_leading  1x9\nprojection_leading{instance="two"}  1x9',
        'projection_leading  1x9\nprojection_leading{instance="two"}  0x9',
    ),
    "TasksWait": Example("task_oldest_waiting_seconds  0+60x30", "task_oldest_waiting_seconds  0+60x14 0x9 0+60x14"),
    "NothingDispatched": Example(f"{IDLE}\njobs_dispatched_total  7x40", f"{IDLE}\njobs_dispatched_total  7+1x40"),
    "NoWorkers": Example(
        'tasks{status="pending"}  1x9\nworkers{status="paused"}  2x9\nworkers{status="idle"}  0x9\nworkers{status="busy"}  0x9',
        'tasks{status="pending"}  1x9\nworkers{status="idle"}  0x9\nworkers{status="busy"}  1x9',
    ),
    "AttemptsLost": Example(
        'attempts_total{outcome="lost"}  0+1x60\nattempts_total{outcome="completed"}  0+9x60',
        'attempts_total{outcome="lost"}  0+1x60\nattempts_total{outcome="completed"}  0+30x60',
    ),
    "AppendsSlow": Example(
        'append_duration_seconds_bucket{le="0.5"}  0+90x30\nappend_duration_seconds_bucket{le="1.0"}  0+100x30\n'
        'append_duration_seconds_bucket{le="+Inf"}  0+100x30',
        'append_duration_seconds_bucket{le="0.5"}  0+100x30\nappend_duration_seconds_bucket{le="1.0"}  0+100x30\n'
        'append_duration_seconds_bucket{le="+Inf"}  0+100x30',
    ),
    "AppendsFail": Example("appends_failed_total  0+1x20", "appends_failed_total  0 1x20"),
    "ServerErrors": Example(
        'http_requests_total{status="503"}  0+2x20\nhttp_requests_total{status="200"}  0+98x20',
        'http_requests_total{status="404"}  0+50x20\nhttp_requests_total{status="503"}  0x20\n'
        'http_requests_total{status="200"}  0+98x20',
    ),
}


def test_there_are_twelve_rules_and_each_says_what_to_do() -> None:
    assert len(RULES) == 12
    assert RULES.keys() == EXAMPLES.keys()
    for rule in RULES.values():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "action"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_alert_fires_on_its_trouble_only(name: str) -> None:
    rule, example = RULES[name], EXAMPLES[name]
    held = minutes(rule["for"])
    assert fires(rule["expr"], held, parsed(example.trouble), 60)
    assert not fires(rule["expr"], held, parsed(example.quiet), 60)
    if held:
        assert not fires(rule["expr"], held, parsed(example.trouble), int(held) - 1), "not before its time"


def test_a_lag_that_is_not_known_is_no_small_lag() -> None:
    rule = RULES["ReadModelBehind"]
    assert fires(rule["expr"], 5, parsed("projection_lag_seconds  nanx9\nprojection_lag_events  nanx9"), 9)


@pytest.mark.parametrize(
    "reason",
    [
        'workers{status="idle"}  0x40\nworkers{status="busy"}  2x40\nqueue_jobs{state="pending"}  0x40',
        'workers{status="idle"}  1x40\nworkers{status="busy"}  1x40\nqueue_jobs{state="pending"}  4x40',
    ],
    ids=["workers that are busy for long", "jobs that wait in the queue"],
)
def test_tasks_that_stay_queued_for_another_reason_do_not_mean_that_nothing_is_dispatched(reason: str) -> None:
    busy = parsed(f'tasks{{status="queued"}}  4x40\njobs_dispatched_total  7x40\n{reason}')
    assert not fires(RULES["NothingDispatched"]["expr"], 10, busy, 40)


def test_another_job_does_not_count() -> None:
    of_one = (
        'tasks{status="queued",job="a"}  4x40\nworkers{status="idle",job="a"}  1x40\nqueue_jobs{state="pending",job="a"}  0x40\n'
    )
    rule = RULES["NothingDispatched"]["expr"]
    assert evaluate(rule, parsed(of_one + 'jobs_dispatched_total{job="a"}  7x40'), 30) != {}
    assert evaluate(rule, parsed(of_one + 'jobs_dispatched_total{job="b"}  7x40'), 30) == {}
