"""The figures of a read side for `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from eventlog.admin.scrub import LogScrubber
from eventlog.commands import Commands
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.transport.connection import Connection
from eventlog.jetstream.write_health import Room, WriteState
from httpkit.ops.metrics import gauge, total
from projections.projector.projector import Projector
from projections.projector.status import ProjectorState
from servicekit.serving.background import BackgroundWork


def figures(
    *,
    projector: Projector,
    commands: Commands,
    connection: Connection,
    log: JetStreamLog,
    scrubber: LogScrubber,
    background: BackgroundWork,
) -> Iterator[Metric]:
    """The figures now."""
    yield from _projection(projector)
    yield from _writes(log)
    yield from _scrubbed(scrubber)
    yield from background.collect()
    yield from _broker(connection)
    yield from _appends(log)
    text = "Appends that lost against another writer and were decided again."
    yield total("command_conflicts", text, commands.conflicts)


def _projection(projector: Projector) -> Iterator[Metric]:
    status = projector.status()
    yield gauge("projection_position", "Sequence of the log that the read model has reached.", status.position)
    yield gauge("projection_lag_events", "Events of the log that the read model has not applied.", status.lag_events)
    yield gauge("projection_lag_seconds", "Age of the oldest event that is not applied.", status.lag_seconds)
    yield gauge("projection_rate", "Events applied per second, over the last five seconds.", status.rate)
    yield gauge("projection_leading", "1 if this process applies the events.", projector.lead.held)
    yield gauge("projection_stopped", "1 if the projector has stopped.", status.state is ProjectorState.STOPPED)
    parked = projector.parked.values()
    yield gauge("projection_parked", "Aggregates that are parked.", len(parked))
    text = "Commits that wait behind one that cannot be applied."
    yield gauge("projection_parked_commits", text, sum(one.waiting for one in parked))
    yield total("projection_commits_applied", "Commits applied to the read model.", status.applied)


def _writes(log: JetStreamLog) -> Iterator[Metric]:
    writes = log.writes.now()
    known = None if writes.state is WriteState.UNKNOWN else not writes.fail
    yield gauge("writes_ready", "1 if appends are taken, 0 if they fail, NaN if it is not known.", known)
    yield _states(writes.state)
    yield _used(log.writes.rooms())


def _broker(connection: Connection) -> Iterator[Metric]:
    yield gauge("broker_connected", "1 where the broker answers.", connection.connected)
    yield total(
        "broker_reconnects", "Connections that were replaced.", connection.counters.reconnects + connection.counters.replaced
    )


def _appends(log: JetStreamLog) -> Iterator[Metric]:
    yield HistogramMetricFamily(
        "append_duration_seconds",
        "Time until the broker had stored what was appended.",
        buckets=[("+Inf" if bound == inf else str(bound), float(count)) for bound, count in log.timings.cumulative()],
        sum_value=log.timings.total,
    )
    yield total("appends_failed", "Appends that were refused, or whose outcome was not known in time.", log.failed)
    yield total("appends_shared", "Appends that were stored in a batch shared with others.", log.group.shared)


def _scrubbed(scrubber: LogScrubber) -> Iterator[Metric]:
    current, complete, found = scrubber.current, scrubber.complete, scrubber.found
    text = "Sequence that the pass over the log has reached which runs, or ran last."
    yield gauge("log_scrub_position", text, None if current is None else current.position)
    text = "When the last complete pass over the log ended, in seconds since 1970."
    ended = None if complete is None or complete.ended is None else complete.ended.timestamp()
    yield gauge("log_scrub_completed_timestamp_seconds", text, ended)
    text = "Records of the log that are damaged, as far as a pass of this process has found."
    yield gauge("log_damaged_records", text, None if found is None else found.count)


def _states(now: WriteState) -> Metric:
    text = "1 for the state of appends now, 0 for the others."
    states = GaugeMetricFamily("writes_state", text, labels=["state"])
    for state in WriteState:
        states.add_metric([state.value], float(state is now))
    return states


def _used(rooms: Sequence[Room]) -> Metric:
    text = "Share of each limit of the broker that is used, from 0 to 1; appends fail at 1."
    used = GaugeMetricFamily("broker_limit_used_ratio", text, labels=["limit"])
    for room in rooms:
        used.add_metric([room.kind], room.share)
    return used
