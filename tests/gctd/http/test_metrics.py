"""The metrics at /metrics of a running system, which include every metric of the dashboard."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import yaml
from prometheus_client.parser import text_string_to_metric_families

from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from gctd.control.lanes.queues import SCAN_CONSUMER, SCAN_STREAM, JobQueues
from tests.support import ROOT
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

REPO = "https://example.com/owner/name"
RULES = ROOT / "deploy" / "prometheus" / "gctd.rules.yml"
DASHBOARD = ROOT / "docs" / "grafana" / "gctd.json"
WORDS = frozenset(
    ["by", "le", "rate", "sum", "max", "min", "topk", "histogram_quantile", "label_values", "job", "m", "or", "and", "increase"]
)
"""Words of queries other than names of metrics. Labels are in braces or in `by (...)`."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path_factory.mktemp("metrics")) as running:
        yield running


async def samples(system: TrackerSystem) -> dict[tuple[str, ...], float]:
    """Values by name and values of labels."""
    _, text = await system.status("/metrics")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def publish_again(system: TrackerSystem, *ids: str) -> None:
    """Put second copies of jobs into the queue, under other message ids, when the paused workers ask for no job any more."""
    async with Connection.open(system.nats.url, name="test") as connection:

        async def at_rest() -> bool:
            return bool((await call(connection, f"CONSUMER.INFO.{SCAN_STREAM}.{SCAN_CONSUMER}"))["num_waiting"] == 0)

        await wait_until(at_rest, timeout=30, every=0.05)
        for id_ in ids:
            await JobQueues(connection).scan.publish("scan", id_, b"{}", dedupe=f"second {id_}")


async def test_work_shows_in_the_figures(system: TrackerSystem) -> None:
    await system.start_worker(1, FAKE_PROJECTS="3", FAKE_FAILS="1", GCTD_CONCURRENCY="2")
    await system.register(REPO)
    tasks = await system.post("/api/repos/analyze", {"repo_url": REPO})
    for task in tasks:
        await system.until_task(task["id"], "completed")

    await system.post("/api/workers/worker-1/pause")
    await system.until_worker("worker-1", "paused")
    await publish_again(system, *(task["id"] for task in tasks))
    waiting = await system.post("/api/repos/analyze", {"repo_url": REPO, "project": "p1"})

    async def settled() -> dict[tuple[str, ...], float] | None:
        found = await samples(system)
        expected = {
            ("attempts_total", "completed"): 3,
            ("attempts_total", "failed"): 3,
            ("attempts_total", "lost"): 0,
            ("tasks_ended_total", "completed"): 3,
            ("attempt_stage_duration_seconds_count", "test"): 6,
            ("attempt_stage_duration_seconds_count", "store"): 3,
            ("tasks", "queued"): 1,
            ("tasks", "running"): 0,
            ("queue_jobs", "pending"): 1,
            ("workers", "paused"): 1,
            ("workers", "idle"): 0,
            ("worker_slots",): 3,  # two for scans, one for short jobs
            ("worker_jobs",): 0,
            ("projection_lag_events",): 0,
        }
        return found if {key: found.get(key) for key in expected} == expected else None

    found = await wait_until(settled, timeout=60, every=0.1)
    assert found is not None
    assert found["task_oldest_waiting_seconds",] > 0
    assert found["append_duration_seconds_count",] >= 3, "registering, scheduling, pausing"
    assert 0 < found["append_duration_seconds_sum",] < 60
    assert found["worker_memory_bytes",] > 1e6
    assert found["http_request_duration_seconds_count", "POST", "/api/repos/analyze"] == 2
    assert all(waiting[0]["id"] not in label and "example.com" not in label for key in found for label in key)
    await system.status(f"/api/tasks/{waiting[0]['id']}", "DELETE")

    async def cancelled() -> bool:
        found = await samples(system)
        names = ("tasks_ended_total", "cancelled"), ("attempts_total", "cancelled"), ("queue_jobs", "pending")
        return [found[name] for name in names] == [1, 0, 0]

    await wait_until(cancelled, timeout=30, every=0.1)


def names(query: str) -> set[str]:
    """The metrics that a query names."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)", " ", query)
    return set(re.findall(r"[a-z][a-z0-9_]*", bare)) - WORDS


def queries(node: Any) -> Iterator[str]:
    """All queries in a dashboard."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key in {"expr", "definition"})
        yield from (found for value in node.values() for found in queries(value))
    elif isinstance(node, list):
        yield from (found for value in node for found in queries(value))


async def series(system: TrackerSystem) -> tuple[dict[str, str], set[str]]:
    """The types of all metrics by name, and the names of their series."""
    _, text = await system.status("/metrics")
    families = {family.name: family.type for family in text_string_to_metric_families(text)}
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    return families, {name + ending for name, kind in families.items() for ending in endings.get(kind, ("",))}


async def test_the_alert_rules_ask_for_metrics_that_there_are(system: TrackerSystem) -> None:
    _, there = await series(system)
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    asked = set().union(*(names(rule["expr"]) for group in rules["groups"] for rule in group["rules"]))
    assert len(asked) > 10
    assert asked - there == set()


async def test_the_dashboard_uses_only_existing_metrics_and_shows_all_of_them(system: TrackerSystem) -> None:
    families, there = await series(system)
    asked = set().union(*(names(query) for query in queries(json.loads(DASHBOARD.read_text()))))
    assert len(asked) > 20
    assert asked - there == set()
    shown = {name for name in families if any(one.startswith(name) for one in asked)}
    assert {name for name in set(families) - shown if not name.startswith("process_")} == set()


async def test_without_the_broker_the_figures_come_and_name_the_unknown_ones(system: TrackerSystem) -> None:
    await system.nats.kill()

    async def blind() -> bool:
        found = await samples(system)
        return found["broker_connected",] == 0 and math.isnan(found["queue_jobs", "pending"])

    await wait_until(blind, timeout=60, every=0.1)
    found = await samples(system)
    assert found["tasks", "queued"] == 0, "what the tables say is known"
    assert math.isnan(found["workers", "paused"])
