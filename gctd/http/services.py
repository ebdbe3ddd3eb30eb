"""What the handlers of the API work with."""

from __future__ import annotations

import attrs

from eventlog.blobs import Blobs
from eventlog.presence import Presence
from gctd.control.rescoring import Rescoring
from gctd.control.tracker import Tracker
from gctd.control.updates import Updates
from gctd.domain.config import ProjectConfig
from gctd.exports.coverage import Coverages
from gctd.hosts.links import Links
from gctd.http.attemptlogs import AttemptLogs
from gctd.http.logreader import LogReader
from httpkit.readside import ReadSide
from httpkit.streams import Streams
from projections.tracker.queries import TrackerQueries


@attrs.frozen(kw_only=True)
class Services:
    """The parts of a control plane. `defaults` is what holds for projects where neither they nor their root say otherwise."""

    tracker: Tracker
    updates: Updates
    rescoring: Rescoring
    defaults: ProjectConfig
    queries: TrackerQueries
    blobs: Blobs
    reader: LogReader
    coverages: Coverages
    links: Links
    presence: Presence
    side: ReadSide
    logs: AttemptLogs
    streams: Streams
