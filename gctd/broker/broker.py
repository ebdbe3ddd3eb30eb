"""The parts of the broker that a process of the tracker uses: the log, the queues of jobs, who is present, blobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs
import structlog

from eventlog.admin import Declarations, apply_declarations, load_declarations
from eventlog.jetstream import Connection, JetStreamLog
from gctd.broker import attempt_logs as logs
from gctd.broker.blobs import BlobStore
from gctd.broker.presence import Presence
from gctd.broker.text_streams import TextStreams
from gctd.control.lanes.queues import LANES_STREAM, SCAN_STREAM, JobQueues
from gctd.domain import delivery, repo, schedule, task, verdict, worker  # noqa: F401 - importing them registers their events
from gctd.domain.registry import REGISTRY
from gctd.readmodel import MODEL
from gctd.settings import Settings

_log = structlog.get_logger(__name__)

EVENTS, BLOBS, WORKERS, JOBS = "GCTD", "gctd-blobs", "gctd-workers", SCAN_STREAM


@attrs.frozen(kw_only=True)
class Broker:
    """The tracker's streams and buckets on one connection."""

    connection: Connection
    log: JetStreamLog
    queues: JobQueues
    presence: Presence
    blobs: BlobStore
    logs: TextStreams


def overrides(settings: Settings) -> Mapping[str, Mapping[str, str]]:
    """Return the fields of `streams.yaml` that the settings replace."""
    return MODEL.overrides(lambda setting: getattr(settings, setting.key))


def declarations(settings: Settings) -> Declarations:
    """The tracker's part of `streams.yaml`, changed by its settings: other services have theirs. Raises DeclarationInvalid."""
    return load_declarations(replicas=settings.replicas, overrides=overrides(settings)).only(
        EVENTS, SCAN_STREAM, LANES_STREAM, logs.STREAM, WORKERS, BLOBS
    )


@asynccontextmanager
async def open_broker(settings: Settings, *, name: str) -> AsyncIterator[Broker]:
    """Connect, and create the missing parts of `streams.yaml`.

    Raises Unavailable, DeclarationInvalid. Drift that is not repaired is logged: `projections streams plan` shows it.
    """
    declared = declarations(settings)
    async with Connection.open(settings.nats_url, name=name) as connection:
        for drift in await apply_declarations(connection, declared):
            _log.warning("stream differs from its declaration", drift=str(drift))

        yield broker_on(connection, JetStreamLog(connection, EVENTS, REGISTRY), declared)


def broker_on(connection: Connection, log: JetStreamLog, declared: Declarations) -> Broker:
    """Return the streams and buckets on a connection. They must exist as declared."""

    async def repair() -> None:
        await apply_declarations(connection, declared)

    return Broker(
        connection=connection,
        log=log,
        queues=JobQueues(connection, repair=repair),
        presence=Presence(connection, WORKERS),
        blobs=BlobStore(connection, BLOBS),
        logs=TextStreams(connection, logs.STREAM, prefix=logs.PREFIX),
    )
