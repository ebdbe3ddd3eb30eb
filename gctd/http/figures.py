"""Figures of a control plane for `/metrics`: queue, tasks, workers. `servicekit.read_side` has the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import attrs
import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog import EventLogError
from gctd.broker.broker import Broker
from gctd.broker.queue import Depth
from gctd.control.heartbeat import Heartbeat, WorkerStatus, decoded
from gctd.control.lanes.lanes import Lanes
from gctd.domain.task.state import TaskStatus
from gctd.readmodel.queries import TrackerQueries
from httpkit import NOT_KNOWN, gauge, total
from projections import ProjectionError

_log = structlog.get_logger(__name__)

_ALIVE = (TaskStatus.QUEUED, TaskStatus.PENDING, TaskStatus.RUNNING)
_HELD = "held"
_PRESENT = tuple(status for status in WorkerStatus if status is not WorkerStatus.GONE)


@attrs.frozen(kw_only=True)
class _Asked:
    """The last answers of the broker and the read model; None: no answer."""

    queue: Depth | None = None
    tasks: Mapping[str, int] | None = None
    oldest: datetime | None = None
    workers: Mapping[str, int] | None = None
    heartbeats: tuple[Heartbeat, ...] | None = None


class Figures(Collector):
    """Figures, read at each scrape after a call of `ask`."""

    def __init__(self, broker: Broker, lanes: Lanes, queries: TrackerQueries) -> None:
        self._broker = broker
        self._lanes = lanes
        self._queries = queries
        self._asked = _Asked()

    async def ask(self) -> None:
        """Ask broker and read model. Missing answers are shown as unknown."""
        self._asked = _Asked()
        try:
            waiting = await self._queries.tasks_alive()
            self._asked = attrs.evolve(
                self._asked,
                tasks={status: row.count for status, row in waiting.items()},
                oldest=min((row.oldest for status, row in waiting.items() if status != TaskStatus.RUNNING), default=None),
            )
            paused = {worker.id for worker in await self._queries.workers() if worker.paused}
            present = {id_: decoded(payload) for id_, payload in (await self._broker.presence.present()).items()}
            workers = Counter[str](heartbeat.shown(paused=id_ in paused) for id_, heartbeat in present.items())
            self._asked = attrs.evolve(self._asked, workers=workers, heartbeats=tuple(present.values()))
            self._asked = attrs.evolve(self._asked, queue=await self._broker.queues.scan.depth())
        except (EventLogError, ProjectionError) as error:
            _log.debug("figures not known", reason=str(error))

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        yield total("jobs_dispatched", "Jobs put into the queue.", self._lanes.dispatched)
        yield from self._tasks_and_queue()
        yield from self._workers()

    def _tasks_and_queue(self) -> Iterator[Metric]:
        asked = self._asked
        yield _by("tasks", "Tasks that wait or run.", "status", asked.tasks, [status.value for status in _ALIVE])
        age = None if asked.tasks is None else 0.0
        if asked.oldest is not None:
            age = max(0.0, (datetime.now(UTC) - asked.oldest).total_seconds())
        yield gauge("task_oldest_waiting_seconds", "How long the task has waited that has waited longest; 0: none waits.", age)
        depth = None if asked.queue is None else {**attrs.asdict(asked.queue), _HELD: self._lanes.held}
        known = [*(field.name for field in attrs.fields(Depth)), _HELD]
        yield _by("queue_jobs", "Jobs in the queue of scans, and held back from all queues.", "state", depth, known)

    def _workers(self) -> Iterator[Metric]:
        asked = self._asked
        yield _by("workers", "Workers that are present.", "status", asked.workers, [status.value for status in _PRESENT])
        beats = asked.heartbeats
        sums = {
            "worker_slots": ("Jobs that the workers together take at a time.", lambda beat: beat.concurrency + beat.fast),
            "worker_jobs": ("Jobs that workers have in hand.", lambda beat: len(beat.tasks)),
            "worker_cpu_cores": ("Cores that the workers use, with all that they started.", lambda beat: beat.cpu),
            "worker_memory_bytes": ("Memory that the workers use, with all that they started.", lambda beat: beat.memory),
        }
        for name, (text, figure) in sums.items():
            yield gauge(name, text, None if beats is None else sum(map(figure, beats)))


def _by(name: str, text: str, label: str, values: Mapping[str, int] | None, known: list[str]) -> Metric:
    """A gauge with one label, of which every known value is shown."""
    family = GaugeMetricFamily(name, text, labels=(label,))
    for value in known:
        family.add_metric([value], NOT_KNOWN if values is None else float(values.get(value, 0)))
    return family
