"""Services for the handlers of the API."""

from __future__ import annotations

import attrs

from gctd.broker.blobs import Blobs
from gctd.broker.presence import Presence
from gctd.control.comparing.baselines import Baselines
from gctd.control.comparing.judging import Judging
from gctd.control.forges.receiving import Hooks
from gctd.control.function_search import FunctionSearch
from gctd.control.functions import FunctionLookup
from gctd.control.requests.rescoring import Rescoring
from gctd.control.requests.tracker import Tracker
from gctd.control.requests.uploads import Uploads
from gctd.control.updates.update_check import Updates
from gctd.control.upkeep.removals import Removals
from gctd.domain.repo.config import ProjectConfig
from gctd.exports.coverage import Coverages
from gctd.exports.dashboard import Dashboard
from gctd.http.tasks.attempt_logs import AttemptLogs
from gctd.http.tasks.log_reader import LogBrowser
from gctd.readmodel.queries import TrackerQueries
from gctd.scan.hosts.links import Links
from httpkit import Streams
from servicekit import Running

BROKER_TIME_LIMIT = 30.0
"""Seconds for an answer that reads from the broker as well. It holds no connection to the tables while the broker hangs."""


@attrs.frozen(kw_only=True)
class Services(Running):
    """The parts of a control plane. `defaults` is what holds for projects where neither they nor their root say otherwise.

    `max_attempts` are the attempts that a task gets, also when a user retries it.

    Inside `snapshots.moment` the `queries` see one moment of the tables.
    """

    hooks: Hooks
    tracker: Tracker
    updates: Updates
    rescoring: Rescoring
    removals: Removals
    uploads: Uploads
    baselines: Baselines
    judging: Judging
    defaults: ProjectConfig
    max_attempts: int
    queries: TrackerQueries
    blobs: Blobs
    reader: LogBrowser
    coverages: Coverages
    links: Links
    dashboard: Dashboard
    functions: FunctionLookup
    search: FunctionSearch
    presence: Presence
    logs: AttemptLogs
    streams: Streams
