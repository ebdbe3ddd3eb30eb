"""One way to make a service: log, read model and HTTP put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog.facade import facade

if TYPE_CHECKING:
    from servicekit.command_context import context, replayed
    from servicekit.feed import EventChange
    from servicekit.readside import ReadSide
    from servicekit.readside.replica import ReadReplica
    from servicekit.service import Service
    from servicekit.serving.running import Parts, Running, answer
    from servicekit.settings import ServiceSettings
    from servicekit.status_route import projections_route

__all__ = [
    "EventChange",
    "Parts",
    "ReadReplica",
    "ReadSide",
    "Running",
    "Service",
    "ServiceSettings",
    "answer",
    "context",
    "projections_route",
    "replayed",
]

__getattr__ = facade(
    __name__,
    {
        "servicekit.service": "Service",
        "servicekit.settings": "ServiceSettings",
        "servicekit.serving.running": "Parts Running answer",
        "servicekit.feed": "EventChange",
        "servicekit.command_context": "context replayed",
        "servicekit.readside": "ReadSide",
        "servicekit.readside.replica": "ReadReplica",
        "servicekit.status_route": "projections_route",
    },
)
