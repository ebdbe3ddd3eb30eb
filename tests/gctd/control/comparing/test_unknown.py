"""A result that stays unknown is not kept: a later analysis of the commit can be judged."""

from __future__ import annotations

from typing import Any, cast

from eventlog.commands import Commands
from eventlog.testing.memory import MemoryLog
from gctd.broker.blobs import MemoryBlobs
from gctd.control.comparing.baselines import Baselines
from gctd.control.comparing.judging import Judging
from gctd.domain.registry import REGISTRY
from gctd.domain.verdict import VERDICT, Result, Rules, verdict_id
from gctd.engines import report as report_format
from gctd.readmodel.queries import TrackerQueries
from tests.gctd.control.comparing.test_behind import BASE, Tables
from tests.support.tracker.analyses import analysis, entry, report


async def test_no_verdict_is_kept_of_an_analysis_that_does_not_record_what_is_measured() -> None:
    blobs, made, log, nothing = MemoryBlobs(), report(entry()), MemoryLog(REGISTRY), cast("Any", None)
    stored = await blobs.put(report_format.encode(made))
    after, tables = analysis(made, report_digest=stored.digest, states=None), Tables()
    queries, rules = cast("TrackerQueries", tables), Rules(threshold=30.0)
    baselines = Baselines(nothing, queries, nothing, nothing, nothing)
    judging = Judging(log, Commands(log), queries, blobs, nothing, baselines, caught_up=tables.catch_up)
    found = await judging.ask(after, BASE, rules, None)
    assert (found.result, found.id, found.base_task) == (Result.UNKNOWN, None, None)
    assert found.reason == "the analysis does not record which functions are measured: analyse the commit again"
    kept = verdict_id(after.analysis_id, after.commit_sha, BASE, rules)
    assert await log.last(VERDICT.aggregate(kept), consistent=True) is None
