"""Figures of a control plane for `/metrics`: log, read model, commands, jobs."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog.commands import Commands
from gctd.broker import Broker
from gctd.control.dispatcher import Dispatcher
from projections.projector import Projector
from projections.status import State


class Figures(Collector):
    """Read when they are asked for."""

    def __init__(self, broker: Broker, projector: Projector, commands: Commands, dispatcher: Dispatcher) -> None:
        self._broker = broker
        self._projector = projector
        self._commands = commands
        self._dispatcher = dispatcher

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        status = self._projector.status()
        gauges = {
            "projection_position": ("Sequence of the log that the read model has reached.", status.position),
            "projection_lag_events": ("Events of the log that the read model has not applied.", status.lag_events),
            "projection_lag_seconds": ("Age of the oldest event that is not applied.", status.lag_seconds),
            "projection_stopped": ("1 where the projector has stopped.", status.state is State.STOPPED),
            "broker_connected": ("1 where the broker answers.", self._broker.connection.connected),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value=float("nan") if value is None else float(value))
        counters = self._broker.connection.counters
        totals = {
            "projection_commits_applied": ("Commits applied to the read model.", status.applied),
            "command_conflicts": ("Appends that lost against another writer and were decided again.", self._commands.conflicts),
            "jobs_dispatched": ("Jobs put into the queue.", self._dispatcher.dispatched),
            "broker_reconnects": ("Connections to the broker made anew.", counters.reconnects + counters.replaced),
        }
        for name, (text, value) in totals.items():
            yield CounterMetricFamily(name, text, value=float(value))
