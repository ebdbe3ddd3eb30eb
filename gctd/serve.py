"""`gctd serve`: the control plane as one process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib.metadata import version

import attrs

from gctd.broker.broker import broker_on, declarations
from gctd.control.comparing.baselines import Baselines
from gctd.control.comparing.judging import Judging
from gctd.control.dispatcher import Dispatcher
from gctd.control.forges.configured import read_forges
from gctd.control.forges.receiving import Hooks
from gctd.control.forges.report_contents import ReportContents
from gctd.control.forges.reporting import Reporting
from gctd.control.function_search import FunctionSearch
from gctd.control.functions import FunctionLookup
from gctd.control.lanes.lanes import Lanes
from gctd.control.requests.policy import Policy
from gctd.control.requests.rescoring import Rescoring
from gctd.control.requests.tracker import Tracker
from gctd.control.requests.uploads import Uploads
from gctd.control.updates.scheduled import ScheduledUpdates
from gctd.control.updates.update_check import Updates
from gctd.control.upkeep.reaper import Reaper, ReaperTimeouts
from gctd.control.upkeep.removals import Removals
from gctd.control.upkeep.unused_blobs import UnusedBlobs
from gctd.domain.options import format_duration
from gctd.domain.repo.config import ProjectConfig
from gctd.engines.registry import NAMES, engine_named
from gctd.exports.coverage import Coverages
from gctd.exports.dashboard import Dashboard
from gctd.http.api import pages, table
from gctd.http.examples import EXAMPLES
from gctd.http.figures import Figures
from gctd.http.frames import show
from gctd.http.services import Services
from gctd.http.tasks.attempt_logs import AttemptLogs
from gctd.http.tasks.log_reader import LogBrowser
from gctd.http.tasks.outcomes import Outcomes
from gctd.readmodel import MODEL
from gctd.readmodel.changes import DECIDERS
from gctd.readmodel.model import ACCESS
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.reports import Reports
from gctd.scan.git.commands import Git
from gctd.scan.git.history import Histories
from gctd.scan.hosts.links import Links
from gctd.scan.policy import git_settings, repo_policy
from gctd.settings import Settings
from httpkit import Edge, ListenAddress, Streams
from servicekit import Part, Parts, Running, Service


def _parts(running: Running, settings: Settings) -> Parts:
    broker, side = broker_on(running.connection, running.log, declarations(settings)), running.side
    snapshots = running.snapshots
    queries, streams, outcomes = TrackerQueries(snapshots), Streams(), Outcomes()
    outcomes.start(running.head.last)
    logs = AttemptLogs(broker.logs, broker.blobs, queries)
    ttl = settings.presence_ttl
    timeouts = ReaperTimeouts(queue=settings.queue_timeout, absence=ttl / 3, presence=ttl, job=ttl)
    lanes = Lanes(broker.log, side.commands, broker.queues, broker.presence, patience=timeouts.job)
    dispatcher = Dispatcher(broker.log, lanes, running.store, queries)
    reaper = Reaper(broker.log, side.commands, queries, lanes, broker.presence, timeouts)
    policy = Policy(
        repos=repo_policy(settings),
        engine=engine_named(settings.worker_engine).name,
        engines=frozenset(NAMES),
        max_attempts=settings.max_attempts,
    )
    tracker = Tracker(broker.log, side.commands, policy)
    git = Git(git_settings(settings))
    reports = Reports(broker.blobs)
    baselines = Baselines(broker.log, queries, git, Histories(settings.cache_directory.absolute(), git), repo_policy(settings))
    judging = Judging(broker.log, side.commands, queries, broker.blobs, tracker, baselines, caught_up=side.catch_up)
    removals = Removals(broker.log, side.commands, queries, tracker, caught_up=side.catch_up)
    updates = Updates(broker.log, queries, tracker, git, caught_up=side.catch_up, git_timeout=settings.git_timeout)
    scheduled = ScheduledUpdates(broker.log, side.commands, updates, every=timedelta(seconds=settings.check_updates_every))
    forges = read_forges(settings.forges_file)
    links, dashboard = Links.of(settings.git_hosts), Dashboard.at(settings.public_url)
    contents = ReportContents(queries, judging, broker.blobs, links, dashboard)
    reporting = Reporting(broker.log, side.commands, queries, tracker, forges, contents, caught_up=side.catch_up)
    services = Services(
        **attrs.asdict(running, recurse=False),
        hooks=Hooks(side.commands, tracker, forges),
        tracker=tracker,
        baselines=baselines,
        judging=judging,
        updates=updates,
        rescoring=Rescoring(broker.log, queries, tracker, caught_up=side.catch_up),
        removals=removals,
        uploads=Uploads(broker.log, queries, broker.blobs, tracker, caught_up=side.catch_up),
        defaults=_project_defaults(settings),
        max_attempts=settings.max_attempts,
        queries=queries,
        blobs=broker.blobs,
        reader=LogBrowser(broker.log),
        coverages=Coverages(broker.blobs),
        links=links,
        dashboard=dashboard,
        functions=FunctionLookup(broker.blobs, reports, _project_defaults(settings)),
        search=FunctionSearch(reports),
        presence=broker.presence,
        logs=logs,
        streams=streams,
    )
    figures = Figures(broker, lanes, queries)
    return Parts(
        services=services,
        parts=[
            Part("dispatcher", dispatcher.run),
            Part("lanes", lanes.run),
            Part("reaper", reaper.run),
            Part("judging", judging.run),
            *([Part("reports to forges", reporting.run)] if forges else []),
            Part("removals", removals.run),
            Part("unused blobs", UnusedBlobs(broker.log, broker.blobs, grace=settings.blob_grace).run),
            *([Part("scheduled updates", scheduled.run)] if settings.check_updates_every else []),
            Part("attempt logs", applied=logs.applied),
            Part("outcomes", applied=outcomes.applied, collect=outcomes.collect),
            Part("queue", collect=figures.collect),
        ],
        measure=figures.ask,
        closing=[streams.close],
    )


def _project_defaults(settings: Settings) -> ProjectConfig:
    return ProjectConfig(
        test_args="",
        crap_args=(),
        submodules=False,
        timeout=format_duration(settings.task_timeout),
        git_timeout=format_duration(settings.git_timeout),
        go_flags="",
        coverpkg=False,
        store_source=settings.store_source,
    )


SERVICE = Service(
    name="gctd-serve",
    model=MODEL,
    deciders=tuple(DECIDERS.values()),
    routes=table(public_badges=False),
    show=show,
    pages=pages(),
    tokens=ACCESS,
    settings=Settings,
    edge=Edge(
        title="gctd",
        version=version("gctd"),
        description="A scan tracker for Go repositories: registers, tests, and scores every function by its risk of change.",
        examples=EXAMPLES,
    ),
    declared=declarations,
    parts=_parts,
)


async def serve(settings: Settings, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Run the control plane until SIGINT or SIGTERM; `on_ready` gets the address when requests are answered.

    Raises EventLogError, ProjectionError if it cannot start.
    """
    service = attrs.evolve(SERVICE, routes=table(public_badges=settings.public_badges))
    await service.serve(settings, on_ready=on_ready)
