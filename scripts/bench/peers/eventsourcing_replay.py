"""The same events and rows by the Python library `eventsourcing`: its event store, its projection runner, its tracking.

python eventsourcing_replay.py FILE, in an environment that has the library; its settings (PERSISTENCE_MODULE and so on) come from
the environment. The first line of FILE is `{"tables": [SQL, ...], "puts": {TABLE: SQL}}`, each other one an event:
`[AGGREGATE, NAME, DATA, [[TABLE, ROW], ...]]`. Prints one JSON document: events, seconds, processor seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, UUID, uuid5

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate
from eventsourcing.persistence import InfrastructureFactory, Tracking, TrackingRecorder
from eventsourcing.projection import Projection, ProjectionRunner

TOGETHER = 100
"""Events that are stored with one call, which is not measured."""


class Happened(Aggregate.Event):
    """An event, with its data and its rows."""

    name: str
    data: dict[str, Any]
    rows: list[Any]


class Log(Application[UUID]):
    """Stores the events."""

    def fill(self, lines: list[Any]) -> int:
        """Store these events; the last one's number."""
        versions: dict[str, int] = defaultdict(int)
        last = 0
        for start in range(0, len(lines), TOGETHER):
            stored = []
            for id_, name, data, rows in lines[start : start + TOGETHER]:
                versions[id_] += 1
                happened = Happened(
                    originator_id=uuid5(NAMESPACE_URL, id_),
                    originator_version=versions[id_],
                    timestamp=Happened.create_timestamp(),
                    name=name,
                    data=data,
                    rows=rows,
                )
                stored.append(self.mapper.to_stored_event(happened))
            last = (self.recorder.insert_events(stored) or [last])[-1]
        return last


class View(TrackingRecorder):
    """Writes the rows of one event and the position in one transaction."""

    puts: ClassVar[dict[str, str]] = {}
    datastore: Any
    _insert_tracking: Any

    def put(self, rows: list[Any], tracking: Tracking) -> None:
        """Put these rows."""
        with self.datastore.transaction(commit=True) as cursor:
            self._insert_tracking(cursor, tracking)
            for table, row in rows:
                cursor.execute(self.puts[table], row)


class Rows(Projection[View]):
    """Puts the rows of an event."""

    name = "rows"

    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        """Put the rows."""
        self.view.put(domain_event.rows, tracking)


def view_class(factory: Any) -> type[View]:
    """The view on the store that the environment names."""
    return type("StoredView", (View, factory.tracking_recorder_class), {})


def main(file: Path) -> None:
    """Store, replay, print."""
    first, *rest = file.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    View.puts = header["puts"]
    log = Log()
    last = log.fill([json.loads(line) for line in rest])
    view = view_class(InfrastructureFactory.construct(log.env))
    with log.factory.datastore.transaction(commit=True) as cursor:
        for statement in header["tables"]:
            cursor.execute(statement)
    log.close()
    start, busy = time.perf_counter(), time.process_time()
    try:
        with ProjectionRunner(application_class=Log, projection_class=Rows, view_class=view) as runner:
            runner.wait(last, timeout=3600)
    except NotImplementedError:  # its SQLite store has no subscriptions: then the events are read page by page
        follow(view, last)
    print(json.dumps({"events": len(rest), "seconds": time.perf_counter() - start, "busy": time.process_time() - busy}))


def follow(view: type[View], last: int) -> None:
    """Apply all events up to the last, as the runner does."""
    log = Log()
    rows = Rows(log.factory.tracking_recorder(view))
    done = 0
    while done < last:
        for notification in log.recorder.select_notifications(start=done + 1, limit=TOGETHER):
            rows.process_event(log.mapper.to_domain_event(notification), Tracking(log.name, notification.id))
            done = notification.id


if __name__ == "__main__":
    main(Path(sys.argv[1]))
