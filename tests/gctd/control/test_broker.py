"""The streams of the broker that the start of the tracker touches: its own."""

from __future__ import annotations

import pytest

from eventlog.admin import reconcile
from eventlog.admin.declarations import load_declarations
from eventlog.jetstream.api import ask
from eventlog.jetstream.connection import Connection
from gctd.broker.broker import open_broker
from gctd.settings import Settings

pytestmark = pytest.mark.real


async def test_the_start_of_the_tracker_leaves_the_stream_of_another_service_as_it_is(nats_url: str) -> None:
    """The pantry has a setting for the size of its stream, which the tracker does not know."""
    size = 512 * 1024**2
    async with Connection.open(nats_url, name="pantry") as connection:
        await reconcile.apply_declarations(
            connection, load_declarations(overrides={"PANTRY": {"max_bytes": size}}).only("PANTRY")
        )
        async with open_broker(Settings(nats_url=nats_url), name="gctd"):
            assert (await ask(connection, "STREAM.INFO.PANTRY"))["config"]["max_bytes"] == size
            assert (await ask(connection, "STREAM.INFO.GCTD"))["config"]["max_bytes"] == 3 * 1024**3
