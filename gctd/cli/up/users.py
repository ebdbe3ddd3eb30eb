"""The users of the nats-server that `gctd up` runs, with the permissions of `deploy/nats-server.conf`."""

from __future__ import annotations

from eventlog.embedded import BrokerUser

_DENIED_TO_SERVICES = (
    *("$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>", "$JS.API.STREAM.DELETE.>"),
    *("$JS.API.STREAM.SNAPSHOT.>", "$JS.API.STREAM.RESTORE.>"),
    *("$JS.API.STREAM.PURGE.GCTD", "$JS.API.STREAM.MSG.DELETE.GCTD"),
    *("$JS.API.STREAM.PURGE.PANTRY", "$JS.API.STREAM.MSG.DELETE.PANTRY"),
)
_DENIED_TO_TRACKER = (
    *_DENIED_TO_SERVICES,
    "pantry.>",
    *("$JS.API.STREAM.MSG.GET.PANTRY_KEYS", "$JS.API.DIRECT.GET.PANTRY_KEYS", "$JS.API.DIRECT.GET.PANTRY_KEYS.>"),
    *("$JS.API.STREAM.PURGE.PANTRY_KEYS", "$JS.API.STREAM.MSG.DELETE.PANTRY_KEYS"),
    *("$JS.API.CONSUMER.CREATE.PANTRY_KEYS", "$JS.API.CONSUMER.CREATE.PANTRY_KEYS.>"),
    *("$JS.API.CONSUMER.DURABLE.CREATE.PANTRY_KEYS.>", "$JS.API.CONSUMER.MSG.NEXT.PANTRY_KEYS.>"),
)

OPERATOR = BrokerUser(name="operator")
"""Applies the declarations of streams; the person at the command line."""
PANTRY = BrokerUser(name="pantry", publish_denied=_DENIED_TO_SERVICES)
TRACKER = BrokerUser(name="gctd", publish_denied=_DENIED_TO_TRACKER, subscribe_denied=("pantry.key.>",))
"""`gctd serve`, its workers, and the GraphQL gateway."""

USERS = (OPERATOR, PANTRY, TRACKER)
